export { openWitnessJob, WITNESS_EVERY_MS } from './jobs.js';
