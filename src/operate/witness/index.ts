export { openWitnessJob, WITNESS_EVERY_MS } from './jobs.js';
export { openResolveJob, RESOLVE_EVERY_MS } from './resolve-job.js';
export { witnessRoutes } from './routes.js';
export { openWitness, type WitnessServices } from './services.js';
