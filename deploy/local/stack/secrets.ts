import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createOnce } from './lock.js';
import { StackError } from './stack-error.js';

/** Made once per instance, at its first start, and kept in a file that only its owner can read. */
export interface StackSecrets {
  /** Password of the MariaDB user `seckill`; base64url, so it can stand in a URL as it is. */
  readonly mysqlPassword: string;
  /** Key for signing tokens with HS256; base64url of 48 random bytes. */
  readonly jwtSecret: string;
}

/** Reads the secrets of an instance, making them first where there are none. */
export function ensureSecrets(path: string): StackSecrets {
  const fresh: StackSecrets = {
    mysqlPassword: randomBytes(18).toString('base64url'),
    jwtSecret: randomBytes(48).toString('base64url'),
  };
  return parseSecrets(createOnce(path, `${JSON.stringify(fresh, null, 2)}\n`, 0o600), path);
}

/** @returns null when the instance was never started */
export function readSecrets(path: string): StackSecrets | null {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  return parseSecrets(text, path);
}

function parseSecrets(text: string, path: string): StackSecrets {
  try {
    const { mysqlPassword, jwtSecret } = JSON.parse(text) as Partial<StackSecrets>;
    if (typeof mysqlPassword === 'string' && typeof jwtSecret === 'string') return { mysqlPassword, jwtSecret };
  } catch {
    // falls through to the sentence below
  }
  throw new StackError(`${path} is damaged; put it back from a copy, or delete the whole instance folder.`);
}
