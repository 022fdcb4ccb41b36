#!/usr/bin/env node
// Stack traces name the lines of the sources. Node reads the source map of a file when it loads it, so this comes before any other.
process.setSourceMapsEnabled(true);
await import('./seckill.js');
