export { openResolveJob, RESOLVE_EVERY_MS } from './jobs.js';
export { findingRoutes, type FindingServices } from './routes.js';
