// The entry of `npm run test:all`, which runs everything that is tested. The simulation and planted bugs run at the
// same time as the tests.
import { bootstrap } from '../deploy/local/bootstrap.mjs';

await bootstrap();
await import('./all.ts');
