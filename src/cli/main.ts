#!/usr/bin/env node
// Stack traces show the lines of the sources. Node reads the source map of a file when it loads the file, so this line
// comes before all imports.
process.setSourceMapsEnabled(true);
await import('./seckill.js');
