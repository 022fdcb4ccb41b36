export { followLive, readSaleSeconds } from './routes.js';
export { openLive, type LiveServices } from './services.js';
