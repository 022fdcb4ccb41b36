export { tracePurchase } from './routes.js';
export { openTrace, type TraceServices } from './services.js';
