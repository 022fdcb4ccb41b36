// The entry of `npm start` and `npm run stack`. Works in a fresh checkout without installed or built files.
import { bootstrapBuilt } from './bootstrap.mjs';

await bootstrapBuilt();
await import('../../dist/local/main.js');
