// The entry of `npm start` and `npm run stack`: works in a fresh checkout, where nothing is installed or built yet.
import { bootstrapBuilt } from './bootstrap.mjs';

await bootstrapBuilt();
await import('../../dist/local/main.js');
