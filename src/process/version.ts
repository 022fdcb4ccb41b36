import { readFileSync } from 'node:fs';
import { PACKAGE_ROOT } from '../core/package-root.js';

/** The version of the package that this process runs. */
export const { version } = JSON.parse(readFileSync(new URL('package.json', PACKAGE_ROOT), 'utf8')) as {
  readonly version: string;
};
