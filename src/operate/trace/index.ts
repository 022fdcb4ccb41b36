// The door for programs. The command line loads `commands.ts`, and only when it is named.

export { tracePurchase } from './routes.js';
export { openTrace, type TraceServices } from './services.js';
