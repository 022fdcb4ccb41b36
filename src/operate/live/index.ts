// The entry point for programs. Its routes are in different sections of the documents.

export { followLive, readSaleSeconds } from './routes.js';
export { openLive, type LiveServices } from './services.js';
