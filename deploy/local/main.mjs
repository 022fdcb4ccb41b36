// The entry of `npm start` and `npm run stack`: works in a fresh checkout, where nothing is installed yet.
import { bootstrap } from './bootstrap.mjs';

await bootstrap();
await import('./main.ts');
