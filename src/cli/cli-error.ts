/** What was asked for cannot be done, in one sentence for a person. Exit code 1. */
export class CliError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CliError';
  }
}
