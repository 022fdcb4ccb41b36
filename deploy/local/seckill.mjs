// The entry of `npm run seckill`: the command line from the sources, pointed at the local stack.
import { bootstrap } from './bootstrap.mjs';

await bootstrap();
await import('./seckill.ts');
