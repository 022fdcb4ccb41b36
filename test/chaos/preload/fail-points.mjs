// Loaded before a program: wraps its ports with the fail point that FAILPOINT names, if it is set.

const { FAILPOINT } = process.env;
if (FAILPOINT) {
  const { tsImport } = await import('tsx/esm/api');
  const { failPoints } = await tsImport('../fail-points.ts', import.meta.url);
  const wrappers = failPoints(FAILPOINT);
  globalThis[Symbol.for('seckill.wrap')] = (seam, port) => wrappers[seam](port);
}
