// The entry of `npm run bench`: works in a fresh checkout, where nothing is installed yet.
import { bootstrap } from '../src/cli/bootstrap.mjs';

await bootstrap();
await import('./main.ts');
