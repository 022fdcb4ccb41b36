// The entry of every `npm` script that runs a command from a checkout.
import { bootstrap } from './bootstrap.mjs';

await bootstrap();
await import('../../src/cli/main.ts');
