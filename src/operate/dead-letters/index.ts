import type { Route } from '../../http/route.js';
import { workOnDeadLetters } from './bulk-route.js';
import { discardDeadLetter, exportDeadLetters, listDeadLetters, readDeadLetter, replayDeadLetter } from './routes.js';
import type { DeadLetterServices } from './services.js';

export const deadLetterRoutes: readonly Route<DeadLetterServices>[] = [
  listDeadLetters,
  exportDeadLetters,
  workOnDeadLetters,
  readDeadLetter,
  replayDeadLetter,
  discardDeadLetter,
];
export { deadLetterJobs } from './jobs.js';
export { openDeadLetters, type DeadLetterServices } from './services.js';
