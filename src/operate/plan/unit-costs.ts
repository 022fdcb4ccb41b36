import { z } from 'zod';

/** CPU per order, in µs of one core: in full batches, and in batches of one purchase. */
interface PerOrder {
  readonly full: number;
  readonly single: number;
}

export interface UnitCosts {
  readonly source: string;
  readonly api: PerOrder;
  readonly worker: PerOrder;
  readonly keeper: PerOrder;
  readonly redis: PerOrder;
  readonly mysql: PerOrder;
  readonly broker: PerOrder;
  /** CPU of the api per refusal and per read of a sale, in µs. */
  readonly refusal: number;
  readonly read: number;
  /** CPU of Redis per attempt for the limits of address and user, in µs. */
  readonly limitsInRedis: number;
  /** Purchases that a Redis server deducts and rows that a MySQL server inserts, in full batches. */
  readonly deductsPerSecond: number;
  readonly rowsPerSecond: number;
}

/** The figures of bench/README.md (a test compares both), and the cost of an order that comes alone. */
export const README_COSTS: UnitCosts = {
  source: 'bench/README.md',
  api: { full: 59, single: 342 },
  worker: { full: 17, single: 203 },
  keeper: { full: 15, single: 220 },
  redis: { full: 14, single: 83 },
  mysql: { full: 21, single: 302 },
  broker: { full: 37, single: 234 },
  refusal: 30,
  read: 30,
  limitsInRedis: 11,
  deductsPerSecond: 95_104,
  rowsPerSecond: 69_120,
};

const micros = z.number().min(0);
const load = z.object({
  cpuMicros: z.object({
    api: micros,
    worker: micros,
    keeper: micros,
    redis: micros,
    mariadb: micros,
    broker: micros,
  }),
});
const parts = z.object({
  limits: z.array(
    z.object({ name: z.string(), perSecond: z.number().positive(), micros: z.object({ api: micros }).optional() }),
  ),
});
const benchReport = z.object({ startedAt: z.string(), results: z.array(z.looseObject({ scenario: z.string() })) });

/** Takes costs from `npm run bench -- --json`, else from `README_COSTS`. @returns a sentence if `win` is missing */
export function readBenchReport(text: string): UnitCosts | string {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return 'is not JSON';
  }
  const report = benchReport.safeParse(json);
  if (!report.success) return notReport(report.error);
  const { startedAt, results } = report.data;
  const find = <T>(schema: z.ZodType<T>, scenario: string) => {
    const found = results.find((result) => result.scenario === scenario);
    return found === undefined ? null : schema.safeParse(found);
  };
  const [win, alone, soldOut] = [find(load, 'win'), find(load, 'no-group-commit'), find(load, 'sold-out')];
  const [limits, crowd] = [find(parts, 'limits'), find(parts, 'crowd')];
  if (win === null) return 'has no result of the scenario `win`';
  for (const one of [win, alone, soldOut, limits, crowd]) if (one?.error) return notReport(one.error);

  const full = (win.data as z.infer<typeof load>).cpuMicros;
  const single = alone?.data?.cpuMicros;
  const costOf = (name: keyof typeof full, ours: PerOrder): PerOrder => ({
    full: full[name],
    single: Math.max(full[name], single?.[name] ?? ours.single),
  });
  const perSecond = (part: string): number | undefined =>
    limits?.data?.limits.find(({ name }) => name.startsWith(part))?.perSecond;
  const refusal = soldOut?.data?.cpuMicros.api ?? README_COSTS.refusal;
  return {
    ...README_COSTS,
    source: `bench of ${startedAt}, or bench/README.md for what it lacks`,
    api: costOf('api', README_COSTS.api),
    worker: costOf('worker', README_COSTS.worker),
    keeper: costOf('keeper', README_COSTS.keeper),
    redis: costOf('redis', README_COSTS.redis),
    mysql: costOf('mariadb', README_COSTS.mysql),
    broker: costOf('broker', README_COSTS.broker),
    refusal,
    read: crowd?.data?.limits.find(({ name }) => name === 'sale')?.micros?.api ?? refusal,
    deductsPerSecond: perSecond('deduct') ?? README_COSTS.deductsPerSecond,
    rowsPerSecond: perSecond('insert') ?? README_COSTS.rowsPerSecond,
  };
}

const notReport = ({ issues: [issue] }: z.ZodError): string =>
  `is not a report of \`npm run bench -- --json\`: ${issue?.path.join('.') || 'document'}: ${issue?.message}`;
