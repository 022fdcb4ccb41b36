import { CliError } from '../../../src/cli/cli-error.js';

/**
 * The local stack cannot do what was asked. The message is one sentence for a person: what is wrong and what to do.
 * It carries no stack trace worth showing; a command prints the message and exits 1.
 */
export class StackError extends CliError {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'StackError';
  }
}

/** Files are written under another name first, which means nothing to a person: `system.lock.4711.tmp`. */
const DRAFT_SUFFIX = /(\.\d+)+(\.tmp)?$/;
const NOT_WRITABLE = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EEXIST']);

/** Says a file system error (disk full, not writable) as a sentence; every other error comes back as it is. */
export function explainFileError(error: unknown, dir: string): unknown {
  const { code, path, syscall } = error as NodeJS.ErrnoException;
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new StackError(`The disk of ${dir} is full; free some space and run the same command again.`, {
      cause: error,
    });
  }
  const refused = code !== undefined && NOT_WRITABLE.has(code);
  if (!refused && !(code === 'ENOENT' && syscall === 'mkdir')) return error; // /proc refuses new folders this way
  const target = (path ?? dir).replace(DRAFT_SUFFIX, '');
  return new StackError(
    `Cannot write to ${target} (${code}); make it writable for this user or choose another folder with --dir.`,
    { cause: error },
  );
}
