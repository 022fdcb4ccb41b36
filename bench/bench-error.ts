/** Ends the bench with one sentence for a person and exit code 1. */
export class BenchError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'BenchError';
  }
}
