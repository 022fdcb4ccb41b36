// The entry of `npm run bench`. Works in a fresh checkout, where nothing is installed yet.
import { bootstrap } from '../deploy/local/bootstrap.mjs';

await bootstrap();
await import('./main.ts');
