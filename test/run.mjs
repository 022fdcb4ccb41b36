// The entry of `npm test`. Works in a fresh checkout, where nothing is installed yet.
import { bootstrap } from '../deploy/local/bootstrap.mjs';

await bootstrap();
await import('./run.ts');
