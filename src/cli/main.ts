#!/usr/bin/env node
// An older Node would end with a SyntaxError. Keep the version equal to the one in package.json.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`seckill needs Node 20.19 or newer, this is ${process.versions.node}; install a newer one.`);
  process.exit(1);
}
// Shows source lines in stack traces. Node reads a source map as it loads a file, so this precedes all imports.
process.setSourceMapsEnabled(true);
await import('./seckill.js');
