// Runs behind walls: no network, its own files, its own processes.
import os from 'node:os';

console.log(`Hello from Node.js ${process.version} in a Jerboa sandbox.`);
console.log(`pid ${process.pid}, host ${os.hostname()}, memory ${process.constrainedMemory() / 2 ** 20} MiB`);
