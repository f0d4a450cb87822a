"""The techniques that a review of the whole sandbox tried in November 2026, and where each is now.

They are in the order of the review. Each has its number in `corpus.TECHNIQUES` and the places that
try it: names of cases, or a file of the tests and the function in it.
"""

_COPYING = "sandbox/copying_host.py::"
_NEIGHBOURS = "sandbox/neighbours_host.py::"
_COUNTED = _COPYING + "no_more_processes_than_copies"
_LIFETIME = _COPYING + "nothing_outlives_the_host"
_STILL = _COPYING + "a_copy_runs_nothing_until_it_is_used"
_SIGNALS = _COPYING + "members_cannot_signal_each_other"
_CHANNELS = _COPYING + "channels_are_not_shared"
_SPOILT = _NEIGHBOURS + "copies_that_are_spoilt"
_FLOOD = _NEIGHBOURS + "copies_that_are_asked_for_without_end"
_APART = _NEIGHBOURS + "another_sandbox_is_out_of_reach"
_RACES = _NEIGHBOURS + "lives_that_are_raced"
_FORM = "agents/test_form.py::test_a_form_cannot_weaken_the_walls_nor_send_keys_elsewhere"
_FILES = "memory/test_saving.py::test_a_saved_memory_cannot_make_us_read_a_file"
_REPLIES = "models/test_bounds.py::"
_CONSOLE = "console/test_printer.py::test_hostile_text_wherever_it_comes_from"

REVIEW: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("CLONE_PARENT twice: a process that is not counted", "119", (_COUNTED,)),
    ("it outlives close() and other interpreters", "119", (_COUNTED,)),
    ("it outlives the host without a PID namespace", "119", (_LIFETIME,)),
    ("one per copy, each with all the memory", "119", (_COPYING + "copies_count_as_memory",)),
    ("it keeps close() busy with new folders", "119", (_FLOOD,)),
    ("a hostile copy burns the processor between steps", "120", (_STILL,)),
    ("a hostile copy fills the folder between steps", "120", (_STILL,)),
    ("a hostile copy starts 3,000 threads", "120", (_STILL,)),
    ("a hostile copy takes memory", "120", (_STILL, _COPYING + "copies_count_as_memory")),
    ("SIGCONT to a paused fork", "121", (_SIGNALS,)),
    ("the fork keeps its waker awake", "121", (_SIGNALS,)),
    (
        "CLONE_VFORK: a parent that waits and cannot be stopped",
        "119",
        (_COUNTED, _COPYING + "others_are_not_held_up"),
    ),
    ("SIGCONT overtakes the fork server's SIGSTOP", "121", (_SIGNALS,)),
    ("12 threads ask the fork server without end", "122", (_FLOOD,)),
    ("the parent keeps the channel of its fork, and calls its tools", "121", (_CHANNELS,)),
    ("a duplicate of the channel in a copy hides a death", "121", (_CHANNELS,)),
    ("a greeting from the parent itself", "122", (_SPOILT,)),
    ("a greeting from a process between", "122", (_SPOILT, _COUNTED)),
    ("a greeting with 60 descriptors", "122", (_SPOILT, "many descriptors on their way")),
    ("a greeting of no bytes", "122", (_SPOILT,)),
    ("greetings of 4,000 bytes", "122", (_SPOILT,)),
    ("the copy exits as it greets", "122", (_SPOILT,)),
    ("a failure reported after the greeting", "122", (_SPOILT,)),
    ("a failure before the fork", "122", (_SPOILT,)),
    ("failures of odd numbers", "122", (_SPOILT,)),
    ("failures of odd sizes", "122", (_SPOILT,)),
    ("the parent exits in the middle", "122", (_SPOILT,)),
    ("four threads fork at once", "122", (_COPYING + "closing_waits_for_no_copy", _SPOILT)),
    ("a child by CLONE_PARENT greets as the one between", "119", (_COUNTED,)),
    ("the copy's end held by a process between", "122", (_CHANNELS,)),
    ("a child by CLONE_VM", "119", (_COUNTED,)),
    ("the exit signal SIGKILL to the parent", "119", (_COUNTED,)),
    ("the exit signal SIGSTOP on both forks", "119", (_COUNTED,)),
    ("the copy goes on forking", "120", (_SPOILT, _COPYING + "no_foreign_process_is_left")),
    ("a greeting written by the parent for the copy", "122", (_SPOILT,)),
    ("the copy's channel shut before it is used", "121", (_SPOILT,)),
    (
        "a frame whose marks take quadratic time to count",
        "123",
        ("marks and quotes that take quadratic time to count",),
    ),
    (
        "a Decimal and an int of one hash in a set",
        "112",
        (
            "a number and a long integer of one hash in a set",
            "a number and a long integer of one hash in a dict",
        ),
    ),
    (
        "int64 that collide where pandas looks them up",
        "112",
        ("categories that collide", "levels of an index that collide"),
    ),
    (
        "ints of one hash in an index of several levels",
        "112",
        ("levels of an index of integers of one hash",),
    ),
    (
        "hundreds of thousands of tables and indexes",
        "123",
        ("tens of thousands of tables", "tens of thousands of indexes"),
    ),
    ("str() of a dear final answer", "112", ("an answer that is dear to show",)),
    (
        "an image of 0 x 60,000,000",
        "123",
        ("an image of 60 million rows without a pixel",),
    ),
    (
        "a dtype of 8,000 fields; a path of 400,000 parts",
        "123",
        ("an array of 8,000 fields", "a path of 400,000 parts"),
    ),
    (
        "one open text of two million escapes",
        "123",
        ("one text without an end, of two million escapes",),
    ),
    ("replies that are never read", "124", ("replies that are never read",)),
    (
        "arguments of calls that wait for a slow tool",
        "124",
        ("arguments that wait for a slow tool",),
    ),
    ("an out-of-band byte to the host", "125", ("an out-of-band byte to the host",)),
    (
        "the channel shut, half a header",
        "125",
        ("the channel shut for reading", "half a header, then no more"),
    ),
    ("the mark of a type as an escape", "126", ("the mark of a type, spelt as an escape",)),
    (
        "bools as sizes, shapes, blob numbers",
        "126",
        ("a size that is a bool", "a blob by a bool", "an image whose size is of bools"),
    ),
    (
        "ids of host objects, functions and classes, guessed",
        "126",
        (
            *("an id of a host's object, guessed", "an id that is a list", "a class by True"),
            *("a function by the number 0", "a function by a list"),
        ),
    ),
    (
        "a time zone that is a path, or 1e300",
        "126",
        ("a time zone that is a path", "a time zone that is a number too large"),
    ),
    ("surrogates and NUL in keys, paths and names", "126", ("names that are no text",)),
    ("what is kept under the name __class__", "126", ("names that are no text",)),
    (
        "odd arrays",
        "113",
        (
            *("an array of dates in ninths of attoseconds", "an array of bools that are none"),
            *("an array of 32 dimensions", "an array of fields within fields"),
            *("an array of impossible text", "an array of 70 dimensions"),
        ),
    ),
    ("images of rare modes as answers", "113", ("images of rare modes as results",)),
    (
        "odd tables",
        "113",
        (
            *("a table with labels twice", "a table with a dict for a name"),
            "a table with codes past the end",
        ),
    ),
    (
        "hostile values as output, answer and argument, then saved and replayed",
        "113",
        ("odd values as results, arguments and answers",),
    ),
    (
        "a record with a host function as dict or model_dump",
        "127",
        ("fields that the host might call hold a function of the host",),
    ),
    (
        "a callable host object without methods",
        "127",
        ("fields that the host might call hold a callable object of the host",),
    ),
    (
        "a record with save as an image",
        "127",
        ("a record with a function to save it, as an image",),
    ),
    (
        "the repr of a host object by a misfit argument",
        "128",
        ("the repr of a host's object, by arguments that do not fit",),
    ),
    (
        "the str of a host object by final_answer",
        "128",
        ("the text of a host's object, by the answer",),
    ),
    (
        "raw escapes by names of types and reprs",
        "129",
        ("names and texts that a terminal obeys",),
    ),
    (
        "a value that shows as a plain text",
        "129",
        ("an object that shows itself as a text",),
    ),
    (
        "escapes, markup and bidirectional text on the console, in replay and tree",
        "76",
        (_CONSOLE, "names and texts that a terminal obeys"),
    ),
    ("an error of a tool without a text", "130", ("an error of a tool that has no text",)),
    (
        "the same in parallel: a step without an end",
        "130",
        ("an error of a tool that has no text",),
    ),
    (
        "SystemExit of a tool in parallel: a step without an end",
        "130",
        ("a tool that ends the program, in parallel",),
    ),
    ("a check that raises about the answer", "130", ("an answer that a check cannot name",)),
    (
        "a host object past approval",
        "131",
        ("methods of a host's object past approval",),
    ),
    (
        "a host object past the limits of a run",
        "131",
        ("methods of a host's object past the limit of calls",),
    ),
    ("a burst of fallocate", "132", ("space that is reserved",)),
    (
        "O_TMPFILE and fallocate, held",
        "132",
        ("space that is reserved for files without names",),
    ),
    ("short steps add up: bytes", "133", ("bytes of many short steps",)),
    ("short steps add up: files", "133", ("files of many short steps",)),
    ("native threads", "63", ("threads that Python does not know of",)),
    ("threads of a short step", "133", ("threads of a short step",)),
    ("names that are not there", "135", ("names that are not there",)),
    ("descriptors on the way", "135", ("many descriptors on their way",)),
    ("flock on a library", "138", ("a library that is locked",)),
    ("a channel between sandboxes by flock", "134", ("a library that is locked", _APART)),
    (
        "a probe of the page cache, and eviction",
        "138",
        ("whether a page of a library is in memory, and its eviction",),
    ),
    ("MSG_OOB", "125", ("an out-of-band byte",)),
    (
        "SO_PEERPIDFD",
        "139",
        ("a handle of the host's process, from the socket to it",),
    ),
    (
        "SO_PEERCRED, PEERGROUPS, PEERSEC, NETNS_COOKIE",
        "139",
        ("who is at the other end of a socket",),
    ),
    (
        "SO_PASSCRED, forged SCM_CREDENTIALS",
        "139",
        ("credentials that are forged, and asked for",),
    ),
    ("MSG_ZEROCOPY, MSG_SPLICE_PAGES", "139", ("data that is sent by reference",)),
    ("MAP_HUGETLB", "137", ("huge pages of the machine's pool",)),
    (
        "MADV_MERGEABLE, COLLAPSE, PAGEOUT, HWPOISON, SOFT_OFFLINE",
        "137",
        ("advice that merges, evicts or poisons pages",),
    ),
    (
        "pkey_alloc, mlock, mincore, remap_file_pages, mbind, move_pages",
        "137",
        ("memory that is locked, tagged, moved or remapped",),
    ),
    ("splice, tee, vmsplice", "140", ("pipes that are spliced",)),
    (
        "timer_create, signalfd, inotify, fanotify, mq_open",
        "140",
        ("objects that wake, watch or wait",),
    ),
    (
        "quotactl, ioprio_set, sched_setattr, sched_setscheduler",
        "140",
        ("quotas, and priorities of disk and processor",),
    ),
    ("prctl", "140", ("settings of the process",)),
    ("arch_prctl, modify_ldt, iopl", "140", ("settings of the processor",)),
    ("uretprobe, uprobe: past any filter", "140", ("calls that no filter sees",)),
    (
        "calls of newer kernels, unknown numbers, -1",
        "140",
        ("calls of newer kernels, and of none", "the call number -1"),
    ),
    (
        "commands of fcntl",
        "140",
        ("commands of fcntl that lease, notify, seal or send signals",),
    ),
    (
        "a set-user-id file by the mode of open",
        "141",
        ("a set-user-id file that has something in it",),
    ),
    (
        "setgid and sticky folders, odd names",
        "141",
        ("names that are long, of bytes, or obeyed by terminals",),
    ),
    (
        "whiteouts, RENAME_EXCHANGE with a device, AT_EMPTY_PATH",
        "141",
        ("whiteouts, devices exchanged for files, links of descriptors",),
    ),
    ("openat2, O_PATH", "141", ("paths by descriptors that may not be read",)),
    ("devices written", "141", ("devices and settings of the machine, written",)),
    ("ioctl with high bits", "140", ("ioctl with high bits, and on files",)),
    (
        "socket pairs with high bits, other families, a server on the channel",
        "139",
        ("sockets of other kinds, with high bits", "the socket to the host as a server"),
    ),
    (
        "SO_SNDBUFFORCE, SO_ATTACH_*, SO_LINGER",
        "139",
        ("options of sockets that change what is received",),
    ),
    (
        "kill with high bits, tgkill, prlimit",
        "88",
        ("signals with high bits, to the first process, to all",),
    ),
    ("another sandbox: files, branches, processes", "134", (_APART,)),
    ("interrupt, snapshot, restore, fork and close from threads", "136", (_RACES,)),
    ("a form with executor_type='inprocess'", "143", (_FORM,)),
    ("a form with extra_read=['/']", "143", (_FORM,)),
    (
        "a form with an api_base that gets the key",
        "143",
        ("models/test_form.py::test_the_key_of_the_environment_goes_to_no_address_of_a_form",),
    ),
    (
        "a form with trust_remote_code, or names of classes",
        "143",
        ("models/test_form.py::test_no_address_and_no_code_comes_from_a_form",),
    ),
    (
        "tasks, tools and answers that look like templates",
        "145",
        ("agents/test_prompts.py::test_no_text_but_a_template_is_rendered",),
    ),
    (
        "a template that reaches for __class__",
        "145",
        ("agents/test_prompts.py::test_a_template_can_reach_nothing_of_this_process",),
    ),
    (
        "a memory with images and sound by path, odd kinds, depth, digits",
        "144",
        (
            *(_FILES, "memory/test_saving.py::test_saved_sound_is_never_a_file"),
            "memory/test_saving.py::test_a_broken_form_is_refused_and_the_place_named",
        ),
    ),
    (
        "a memory with a Decimal and an int of one hash",
        "144",
        ("sandbox/test_kernel_codec_costs.py::test_a_saved_memory_is_read_within_the_same_bounds",),
    ),
    (
        "a recording whose reply has an image by path",
        "144",
        ("models/test_recording.py::test_a_recording_cannot_make_us_read_a_file",),
    ),
    (
        "a server: parts with paths, odd usage, odd arguments",
        "146",
        ("models/test_openai.py::test_a_hostile_reply_is_text_and_counts",),
    ),
    (
        "a server: calls of one id, pieces, nested thinking",
        "146",
        (
            "models/test_streamed_calls.py::test_many_calls_of_one_id_take_time_in_proportion",
            "messages/test_messages.py::test_pieces_of_a_call_are_joined_in_time_in_proportion",
            _REPLIES + "test_the_blocks_of_a_reply_have_bounds",
        ),
    ),
    (
        "a stream or body without an end",
        "146",
        (_REPLIES + "test_a_streamed_reply_has_bounds",),
    ),
    (
        "replies that are dear to read, or to show",
        "146",
        (
            "models/test_thinking.py::test_reading_takes_time_in_proportion_to_the_reply",
            "loop/test_parsing.py::test_a_hostile_reply_is_read_in_time_that_grows_with_its_length",
        ),
    ),
    (
        "keys in forms, reprs, errors and echoes",
        "147",
        ("test_secrets.py::test_a_known_secret_is_masked_whatever_its_look",),
    ),
    (
        "variables with a secret inside",
        "128",
        (
            "the repr of a host's object, by arguments that do not fit",
            "agents/test_host_values.py::test_what_comes_with_a_task_is_told_by_its_class",
        ),
    ),
    ("the environment and command lines of guard, fork server and sandbox", "85", (_APART,)),
    (
        "a folder of the user that is named like ours",
        "148",
        ("sandbox/test_workdir.py::test_no_folder_of_a_user_is_ever_swept",),
    ),
)
