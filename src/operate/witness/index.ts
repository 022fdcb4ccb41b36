export { openWitnessJob, WITNESS_EVERY_MS } from './jobs.js';
export { witnessRoutes } from './routes.js';
export { openWitness, type WitnessServices } from './services.js';
