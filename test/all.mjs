// The entry of `npm run test:all`: everything that is tested; the simulation and planted bugs run beside the tests.
import { bootstrap } from '../deploy/local/bootstrap.mjs';

await bootstrap();
await import('./all.ts');
