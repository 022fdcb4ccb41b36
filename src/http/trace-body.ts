import type { PurchaseTrace } from '../recovery/trace/trace-purchase.js';

/** A trace as programs read it, over HTTP and from the command line: times in ISO 8601. */
export function traceBody({ request, standing, steps }: PurchaseTrace): object {
  return {
    ...request,
    ...standing,
    steps: steps.map(({ atMs, ...step }) => ({ at: atMs === null ? null : new Date(atMs).toISOString(), ...step })),
  };
}
