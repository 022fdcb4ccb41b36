/** Has `lua`, `config` and `package.json`. `src/core` and each bundle are equally deep below it (build.mjs). */
export const PACKAGE_ROOT = new URL('../../', import.meta.url);
