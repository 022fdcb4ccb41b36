// The entry point for programs. The command line loads `commands.ts`, only when the command is named.

export { tracePurchase } from './routes.js';
export { openTrace, type TraceServices } from './services.js';
