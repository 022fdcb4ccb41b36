// How each command of the documentation is tried. A row that ends in … covers all commands that begin like it. `seckill`
// stands for `npm run -s seckill --` and for the built program as well.

/** By first-steps.test.ts, in one shell, in the order of the pages. */
export const RUN_HERE: readonly string[] = [
  "SALE=$(seckill sale create --sku pen --title 'A pen' …",
  'seckill sale warm $SALE',
  'seckill sale open $SALE',
  'TOKEN=$(seckill token --user alice)',
  'curl -i -X POST http://127.0.0.1:8080/v1/sales/$SALE/purchases …',
  'curl -s "http://127.0.0.1:8080/v1/sales/$SALE/purchases/order-1?wait=10" …',
  'ORDER=$(curl -s "http://127.0.0.1:8080/v1/sales/$SALE/purchases/order-1?wait=10" …',
  'curl -s -X POST http://127.0.0.1:8080/v1/orders/$ORDER/pay …',
  'export NODE_OPTIONS=--max-semi-space-size=64',
  'seckill migrate',
  'seckill topics',
  'seckill sale list',
  'seckill lua deduct',
  'seckill switch',
  'seckill switch sale L1',
  'seckill switch sale L0',
  'seckill switch purchase L4 --percent 20',
  'seckill rules show > rules.json',
  '$EDITOR rules.json',
  'seckill rules check rules.json',
  'seckill rules set rules.json',
  'seckill rules history',
  'curl -s localhost:8080/metrics | grep seckill_admission_refusals_total',
  'seckill dlq list --state parked',
  'seckill dlq export --since -1d > dead-letters.jsonl',
  'seckill refunds list',
  'seckill reconcile',
  'seckill reconcile --sale $SALE --apply',
  'seckill reconcile jobs --state failed_final',
  'seckill reconcile runs',
  'seckill sale reshard $SALE --buckets 8',
  'seckill sale repair $SALE',
  'seckill sale repair $SALE --force',
  'seckill trace order-1 --sale $SALE --user alice',
  'seckill audit list --subject sale:$SALE --since -1d',
];

/** By another test, which makes what the command needs. */
export const RUN_BY: Readonly<Record<string, readonly string[]>> = {
  'test/newcomer/first-steps.test.ts': ['npm start'],
  'test/guard/fault-matrix.test.ts': ['npx mocha test/guard/fault-matrix.test.ts'],
  'test/guard/config-docs.test.ts': ['npx tsx test/guard/config-docs.ts > docs/configuration.md'],
  'test/simulation/simulation.test.ts': ['npx mocha "test/simulation/**/*.test.ts"'],
  'test/integration/purchase-events.test.ts': [
    'curl -N "http://127.0.0.1:8080/v1/sales/$SALE/purchases/order-1/events" …',
  ],
  'test/integration/dead-letters.test.ts': [
    'seckill dlq show 17',
    'seckill dlq replay 17 18',
    'seckill dlq replay --all-matching --reason retries_exhausted --rate 100 --yes',
    'seckill dlq discard 19',
  ],
  'test/integration/order-life.test.ts': ['seckill refunds done pi_3MtwBwLkdIwHu7'],
  'test/integration/reconcile.test.ts': ['seckill reconcile retry 17'],
  'test/chaos/harness/programs.ts': ['seckill api --port 8080', 'seckill worker', 'seckill keeper'],
  'test/chaos/harness/commands.ts': ['npm run build'],
};

/** Not run by any test. Their options and names are compared with what the programs take, as those of all others. */
export const NOT_RUN: Readonly<Record<string, readonly string[]>> = {
  'runs all tests, this one too': [
    'npm test',
    'npm test -- unit guard',
    'npm test -- contract --grep Outbox',
    'npm test -- --changed',
    'npm run check',
    'npm run coverage',
  ],
  'goes on until somebody stops it': ['npm run test:watch'],
  'uses the folder and the ports of `npm start`, which a developer may be using': [
    'npm run stack -- up',
    'npm run stack -- env',
    'npm run stack -- up --durability host',
  ],
  'breaks servers for minutes to an hour; test/scenario runs the fast scenarios': [
    'npm run chaos -- list',
    'npm run chaos -- run',
    'npm run chaos -- run T3',
    'npm run chaos -- run T3 R',
    'npm run chaos -- run T3 --seeds 20',
    'npm run chaos -- run T3 --seed 7',
    'npm run chaos -- run R1 --seeds 5',
    'npm run chaos -- run --seeds 3 --stacks 3',
    'npm run chaos -- soak',
    'npm run chaos -- soak …',
  ],
  'takes minutes; test/simulation runs 5,000 seeds, and some planted bugs': [
    'npm run simulate -- …',
    'npm run mutants',
    'npm run mutants -- …',
  ],
  'measures an idle machine for minutes': [
    'npm run bench',
    'npm run bench -- …',
    'node --expose-gc --import tsx bench/admission/waiting-room.ts',
  ],
  'stands in a sentence, without all that it needs': ['seckill sale close', 'seckill sale create --buckets 8'],
  'works on the checkout of a developer': ['git clone <this repository> && cd seckill', 'git worktree add ../before …'],
};
