import { Gauge, type Registry } from 'prom-client';

export function createWitnessMetrics(registry: Registry) {
  const gauge = (name: string, help: string): Gauge => new Gauge({ name, help, registers: [registry] });
  const open = gauge('seckill_witness_findings', 'Open findings of the witness, counted up to 10000. Alert on any.');
  const behind = gauge('seckill_witness_behind_seconds', 'Age of the newest change that the witness has read.');
  const clear = (): void => [open, behind].forEach((one) => one.remove()); // `reset` would set it to 0
  clear();
  /** Null if this keeper is not the witness. */
  return (figures: { readonly open: number; readonly behindMs: number } | null): void => {
    if (figures === null) return clear();
    open.set(figures.open);
    behind.set(figures.behindMs / 1000);
  };
}
