// The entry of `npm run seckill`: the command line, built from the current sources and connected to the local stack.
import { bootstrapBuilt } from './bootstrap.mjs';

await bootstrapBuilt();
await import('../../dist/local-seckill/seckill.js');
await import('../../dist/cli/main.js');
