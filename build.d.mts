import type { Plugin } from 'esbuild';

/** @param options.dist instead of that of the checkout */
export function bundlePrograms(options?: {
  readonly dist?: string;
  readonly plugins?: readonly Plugin[];
}): Promise<void>;
/** @throws Error with a sentence when the sources do not compile */
export function bundleIfOlder(): Promise<void>;
