// Runs the kernel in Pyodide: `deno run _wasm.mjs <folder of Pyodide> <URL of its pyodide.mjs>`.
//
// The second thread runs Python and blocks on the host's frames, which are on stdin and stdout. The
// first stays free for what Python cannot see while it runs: interrupts, and the end of the host.

const [folder, module] = Deno.args;
const PERMISSIONS = [
  { name: "read", path: folder },
  ...["read", "write", "net", "env", "run", "ffi", "sys", "import"].map((name) => ({ name })),
];
const SIGINT = 2;

function watch() {
  const signals = new Int32Array(new SharedArrayBuffer(4));
  const kernel = new Worker(import.meta.url, { type: "module", name: "kernel" });
  Deno.addSignalListener("SIGINT", () => {
    Atomics.store(signals, 0, SIGINT);
    Atomics.notify(signals, 0);
  });
  kernel.onmessage = ({ data }) => Deno.exit(data);
  kernel.onerror = (event) => {
    event.preventDefault();
    Deno.exit(1);
  };
  const host = Deno.ppid;
  setInterval(() => Deno.ppid === host || Deno.exit(1), 1000);
  kernel.postMessage(signals);
}

async function serve(signals) {
  // Where frames go, a stray line would be a broken one.
  console.log = console.info = console.debug = console.error;
  let main;
  try {
    main = await load(signals);
  } catch (error) {
    Deno.stdout.writeSync(frame({ t: "failed", b: [], reason: `Pyodide: ${error}` }));
    return 1;
  }
  try {
    main(lock, (milliseconds) => Atomics.wait(signals, 0, 0, milliseconds));
  } catch (error) {
    return error.status ?? 1;
  }
  return 0;
}

async function load(signals) {
  const { loadPyodide } = await import(module);
  const python = await loadPyodide({ indexURL: `${folder}/`, env: { HOME: "/work" } });
  python.setInterruptBuffer(signals);
  python.setStdin({ read: (buffer) => Deno.stdin.readSync(buffer) ?? 0 });
  python.setStdout({ write: (buffer) => Deno.stdout.writeSync(buffer) });
  python.FS.mkdir("/kernel");
  for (const file of ["../kernel.py", "_in_pyodide.py"]) {
    const text = Deno.readTextFileSync(new URL(file, import.meta.url));
    python.FS.writeFile(`/kernel/${file.split("/").pop()}`, text);
  }
  python.runPython("import sys; sys.path.insert(0, '/kernel')");
  return python.pyimport("_in_pyodide").serve;
}

// Gives back the one permission that there was, and looks whether there is another.
function lock() {
  Deno.permissions.revokeSync({ name: "read" });
  const held = PERMISSIONS.filter((what) => Deno.permissions.querySync(what).state === "granted");
  if (held.length) throw new Error(`Deno still grants ${JSON.stringify(held)}`);
  const [major, minor] = Deno.version.deno.split(".").map(Number);
  // Old ones let code change the flags of the engine, and with them its walls; 2.9 does not.
  if (major < 2 || (major === 2 && minor < 9)) throw new Error("it takes Deno 2.9 or newer");
  return JSON.stringify({ deno: Deno.version.deno, permissions: "none" });
}

function frame(fields) {
  const text = new TextEncoder().encode(JSON.stringify(fields));
  return Uint8Array.of(...new Uint8Array(Uint32Array.of(text.length, 0).buffer), ...text);
}

if (self.name === "kernel") {
  self.onmessage = async ({ data }) => self.postMessage(await serve(data));
} else {
  watch();
}
