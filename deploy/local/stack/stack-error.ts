import { CliError } from '../../../src/process/cli-error.js';

/**
 * Reports that the local stack cannot do what was asked. The message is one sentence for people: what is wrong and
 * what to do. The stack trace is not useful: a command prints the message and exits with 1.
 */
export class StackError extends CliError {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = 'StackError';
  }
}

/** Files are first written under another name that means nothing to people: `system.lock.4711.tmp`. */
const DRAFT_SUFFIX = /(\.\d+)+(\.tmp)?$/;
const NOT_WRITABLE = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'EEXIST']);

/** Turns a file system error (disk full, not writable) into a sentence. Returns every other error unchanged. */
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
