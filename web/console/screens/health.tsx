import type { Breakers, MqStatus, Readiness, RulesStatus, RunningProgram } from '../api/types.js';
import { pathOf } from '../logic/routes.js';
import type { Tone } from '../logic/time-line.js';
import { Ago, Badge, Id, Link, Panel, ScreenHead } from '../parts/basics.js';
import { Empty, Failure, Freshness, Loading, Note, Shown } from '../parts/states.js';
import { Table, type Column } from '../parts/table.js';
import { useSnapshotAge, useStaleText } from '../shell/frame.js';
import { useApp, useResource, useStore, useWords, type Resource } from '../shell/hooks.js';
import { BrokerTable } from './messages.js';

/** A program that has not reported for this long has stopped, or hangs. */
const SILENT_AFTER_MS = 10_000;

/** Shows whether each program and each part answers, and if not, why. */
export function HealthScreen() {
  const { live } = useApp();
  const { t, f } = useWords();
  const { snapshot, trouble } = useStore(live.state);
  const ready = useReadiness();
  const breakers = useResource<Breakers>('/admin/v1/breakers', { everyMs: 15_000 });
  const mq = useResource<MqStatus>('/admin/v1/mq/status', { everyMs: 10_000 });
  const rules = useResource<RulesStatus>('/admin/v1/rules/status', { everyMs: 15_000 });
  const ageMs = useSnapshotAge();
  const stale = useStaleText();
  const programs = snapshot?.programs ?? null;
  const hasNoPrograms = programs === null ? trouble !== null : programs.length === 0; // this API is a program, too
  const counts = [
    badIn(programs, stale !== null || hasNoPrograms, (all) => all.filter((one) => !isWell(one)).length),
    badIn(ready.data, ready.error !== null, ({ dependencies }) => dependencies.filter(({ ok }) => !ok).length),
    badIn(breakers.data, breakers.error !== null, (data) => data.breakers.filter(isNotClosed).length),
    isWithoutBroker(mq) ? 0 : badIn(mq.data, mq.error !== null, ({ brokers }) => brokers.filter(isDown).length),
    badIn(rules.data, rules.error !== null, ({ apis }) => apis.filter(({ follows }) => !follows).length),
  ];
  const bad = counts.reduce<number>((sum, count) => sum + (typeof count === 'number' ? count : 0), 0);
  const unknown = counts.filter((count) => count === 'unknown').length;
  return (
    <>
      <ScreenHead
        title={t.health.title}
        badge={
          <>
            {bad > 0 && <Badge tone="bad">{t.health.unwell(f.number(bad))}</Badge>}
            {unknown > 0 && <Badge tone="warn">{t.health.notKnown(f.number(unknown))}</Badge>}
            {counts.every((count) => count === 0) && <Badge tone="ok">{t.health.well}</Badge>}
          </>
        }
      />
      <Panel title={t.health.programs} flush actions={stale !== null && <span class="stale">{stale}</span>}>
        {programs !== null ? (
          <Programs programs={programs} ageMs={ageMs ?? 0} isStale={stale !== null} />
        ) : trouble !== null ? (
          <Failure error={trouble} />
        ) : (
          <Loading rows={4} />
        )}
      </Panel>
      <div class="halves">
        <Panel title={t.health.parts} flush actions={<Freshness {...ready} />}>
          <Shown of={ready}>{({ dependencies }) => <Parts dependencies={dependencies} />}</Shown>
        </Panel>
        <Panel title={t.health.breakers} flush actions={<Freshness {...breakers} />}>
          <Shown of={breakers}>{(data) => <BreakerTable {...data} />}</Shown>
        </Panel>
      </div>
      <Panel title={t.health.brokers} flush actions={<Freshness {...mq} />}>
        {isWithoutBroker(mq) ? (
          <Empty title={t.messages.notConfigured} text={t.messages.notConfiguredText} icon="info" />
        ) : (
          <Shown of={mq} rows={2}>
            {({ brokers }) => <BrokerTable brokers={brokers} />}
          </Shown>
        )}
      </Panel>
      <Panel
        title={t.health.rules}
        actions={
          <>
            <Link to={pathOf({ screen: 'rules', tab: 'in-force' })}>{t.rules.tabs['in-force']}</Link>
            <Freshness {...rules} />
          </>
        }
      >
        <Shown of={rules} rows={1}>
          {(status) => <RulesInForce status={status} />}
        </Shown>
      </Panel>
    </>
  );
}

/** Reads whether this API is ready. An unready API gives its reasons with 503, which counts as an answer here. */
function useReadiness() {
  return useResource<Readiness>('/readyz', { everyMs: 10_000, takes: [503] });
}

/**
 * Returns how serious the state of a part is. Null while its first answer is under way, `unknown` if its last answer is
 * old.
 */
const badIn = <T,>(said: T | null, isOld: boolean, count: (said: T) => number): number | 'unknown' | null =>
  isOld ? 'unknown' : said === null ? null : count(said);

const isNotClosed = ({ state }: Breakers['breakers'][number]): boolean => state !== 'closed';
const isDown = ({ down }: MqStatus['brokers'][number]): boolean => down !== null;

/** True if this API was given no address of the brokers. */
const isWithoutBroker = ({ data, error }: Resource<MqStatus>): boolean =>
  data === null && error?.code === 'broker_not_configured';

const isWell = ({ ready, seenMsAgo }: RunningProgram): boolean => ready && seenMsAgo < SILENT_AFTER_MS;

function Programs({
  programs,
  ageMs,
  isStale,
}: {
  readonly programs: readonly RunningProgram[];
  /** Age of the reports. */
  readonly ageMs: number;
  readonly isStale: boolean;
}) {
  const { t, f } = useWords();
  const columns: readonly Column<RunningProgram>[] = [
    {
      name: t.health.program,
      width: '110px',
      phoneWidth: '76px',
      sort: ({ kind }) => kind,
      cell: ({ kind }) => <b>{t.health.kinds[kind]}</b>,
    },
    {
      name: 'host:pid',
      sort: ({ id }) => id,
      cell: ({ id, problems }) => (
        <>
          <Id text={id} />
          <span class="wraps shows-phone" lang="en">
            {problems.join(' ')}
          </span>
        </>
      ),
    },
    {
      name: t.common.state,
      width: '120px',
      phoneWidth: '96px',
      cell: (program) =>
        program.seenMsAgo >= SILENT_AFTER_MS ? (
          <Badge tone="bad">{t.health.silent}</Badge>
        ) : isStale ? (
          <Badge tone="warn">{t.common.unknown}</Badge>
        ) : (
          <>
            <Badge tone={program.ready ? 'ok' : 'bad'}>{program.ready ? t.health.ready : t.health.notReady}</Badge>{' '}
            {program.notReadySinceMs !== null && <Ago at={program.notReadySinceMs} />}
          </>
        ),
    },
    {
      name: t.health.problems,
      hides: 'phone',
      width: '40%',
      cell: ({ problems }) =>
        problems.length === 0 ? (
          <span class="faint">–</span>
        ) : (
          <span class="wraps" lang="en" title={problems.join('\n')}>
            {problems.join(' ')}
          </span>
        ),
    },
    { name: t.health.version, hides: 'narrow', width: '110px', cell: ({ version }) => version ?? '–' },
    {
      name: t.health.seen,
      isNumber: true,
      width: '110px',
      phoneWidth: '86px',
      sort: ({ seenMsAgo }) => seenMsAgo,
      cell: ({ seenMsAgo }) => t.health.ago(f.duration(Math.round((seenMsAgo + ageMs) / 100) * 100)),
    },
  ];
  return (
    <Table
      label={t.health.programs}
      columns={columns}
      rows={programs}
      keyOf={({ kind, id }) => `${kind} ${id}`}
      empty={<Empty title={t.health.noPrograms} text={t.health.noProgramsText} icon="health" />}
    />
  );
}

function Parts({ dependencies }: Pick<Readiness, 'dependencies'>) {
  const { t } = useWords();
  const columns: readonly Column<Readiness['dependencies'][number]>[] = [
    { name: t.health.part, width: '130px', phoneWidth: '88px', cell: ({ name }) => <b>{name}</b> },
    {
      name: t.common.state,
      width: '150px',
      cell: ({ ok }) => <Badge tone={ok ? 'ok' : 'bad'}>{ok ? t.health.answers : t.health.doesNot}</Badge>,
    },
    {
      name: t.common.details,
      cell: ({ detail }) => (
        <span class="wraps" lang="en">
          {detail}
        </span>
      ),
    },
  ];
  return <Table label={t.health.parts} columns={columns} rows={dependencies} keyOf={({ name }) => name} />;
}

const BREAKER_TONES: Readonly<Record<Breakers['breakers'][number]['state'], Tone>> = {
  closed: 'ok',
  open: 'bad',
  half_open: 'warn',
};

export function BreakerTable({ mode, breakers }: Breakers) {
  const { t } = useWords();
  const columns: readonly Column<Breakers['breakers'][number]>[] = [
    { name: t.health.dependency, cell: ({ name }) => <b>{name}</b> },
    {
      name: t.common.state,
      width: '110px',
      cell: ({ state }) => <Badge tone={BREAKER_TONES[state]}>{t.health.breakerStates[state]}</Badge>,
    },
    {
      name: t.health.by,
      hides: 'phone',
      cell: ({ by }) => (by === 'shared' ? t.health.shared : <Id text={by} />),
    },
    {
      name: t.common.since,
      hides: 'phone',
      width: '110px',
      cell: ({ sinceMs }) => (sinceMs === null ? <span class="faint">–</span> : <Ago at={sinceMs} />),
    },
  ];
  return (
    <>
      <Table label={t.health.breakers} columns={columns} rows={breakers} keyOf={({ name, by }) => `${name} ${by}`} />
      <p class="panel-foot">{t.health.breakerModes[mode]}</p>
    </>
  );
}

export function RulesInForce({ status }: { readonly status: RulesStatus }) {
  const { t, f } = useWords();
  const [tone, text] = (
    {
      everywhere: ['ok', t.rules.everywhere],
      not_everywhere: ['bad', t.rules.notEverywhere],
      nowhere: ['warn', t.rules.nowhere],
    } as const
  )[status.inForce];
  return (
    <>
      <Note tone={tone}>
        <b>{t.rules.version(f.number(status.version))}</b> · {text}
      </Note>
      {status.canary && <CanaryNote canary={status.canary} />}
    </>
  );
}

/** Shows a canary of rules with the shares of refused purchases. `seckill rules` and the API end it. */
function CanaryNote({ canary }: { readonly canary: NonNullable<RulesStatus['canary']> }) {
  const { t, f } = useWords();
  const share = ({ accepted, refused }: typeof canary.tried): string =>
    accepted + refused === 0 ? '–' : f.percent(refused / (accepted + refused));
  return (
    <Note tone="info">
      <b>{t.rules.canary(f.percent(canary.percent / 100), f.number(canary.since))}</b>{' '}
      {t.rules.canaryShares(share(canary.tried), share(canary.others))}
    </Note>
  );
}
