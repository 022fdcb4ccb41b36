/**
 * Flags of Node for api, worker and keeper. Requests live for milliseconds; with the default young generation of 16 MB
 * many of them are copied before they die, which costs the api about a sixth of its CPU (bench, `win`).
 */
export const PROGRAM_NODE_FLAGS = ['--max-semi-space-size=64'] as const; // MiB
