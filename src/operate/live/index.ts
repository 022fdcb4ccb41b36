// The door for programs. Its routes have different places in the documents.

export { followLive, readSaleSeconds } from './routes.js';
export { openLive, type LiveServices } from './services.js';
