#!/usr/bin/env node
// An older Node cannot load the program and would end with a SyntaxError. Keep the version equal to the one in
// package.json.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`seckill needs Node 20.19 or newer, this is ${process.versions.node}; install a newer one.`);
  process.exit(1);
}
// Makes stack traces show the lines of the sources. Node reads the source map of a file when it loads the file, so this
// must come before all imports.
process.setSourceMapsEnabled(true);
await import('./seckill.js');
