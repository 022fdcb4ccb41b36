// The entry of `npm run test:all`: everything that is tested, one command after the other.
import { bootstrap } from '../deploy/local/bootstrap.mjs';

await bootstrap();
await import('./all.ts');
