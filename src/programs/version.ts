import { readFileSync } from 'node:fs';

/** Of the package that this process runs. */
export const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  readonly version: string;
};
