import { useState } from 'preact/hooks';
import {
  JOB_KINDS,
  JOB_STATES,
  type CompensationJob,
  type Counts,
  type Finding,
  type ReconcileRun,
  type ResolvedSale,
  type SaleReport,
} from '../api/types.js';
import { wordIn } from '../i18n/language.js';
import { may } from '../logic/permissions.js';
import { queryOf } from '../logic/query.js';
import { pathOf, RECONCILE_TABS } from '../logic/routes.js';
import type { Tone } from '../logic/time-line.js';
import { Ago, Badge, Button, Cut, Facts, Id, Panel, SaleLink, ScreenHead, Tabs, Time } from '../parts/basics.js';
import { Confirm } from '../parts/confirm.js';
import { Dialog } from '../parts/dialog.js';
import { Choice, choice, FilterBar, TextField } from '../parts/fields.js';
import { Empty, Freshness, Note } from '../parts/states.js';
import { Table, type Column } from '../parts/table.js';
import { navigate, useApp, useFilter, usePages, useWords } from '../shell/hooks.js';
import { WitnessFindings } from './witness.js';

/** Shows the findings of comparisons between Redis and MySQL, and the repairs that followed. */
export function ReconcileScreen({
  tab,
  runId,
}: {
  readonly tab: (typeof RECONCILE_TABS)[number];
  readonly runId: string | null;
}) {
  const { me } = useApp();
  const { t } = useWords();
  const [isComparing, setComparing] = useState(false);
  const [{ saleId }] = useFilter(['saleId'] as const);
  return (
    <>
      <ScreenHead
        title={t.reconcile.title}
        actions={
          may(me.role, 'operator') && (
            <Button kind="main" onClick={() => setComparing(true)}>
              {t.reconcile.compare}
            </Button>
          )
        }
      />
      <Tabs
        label={t.reconcile.title}
        tabs={RECONCILE_TABS.map((one) => ({
          to: pathOf({ screen: 'reconcile', tab: one, runId: null }),
          text: t.reconcile[one],
          current: one === tab,
        }))}
      />
      <WitnessFindings />
      {tab === 'runs' ? <Runs openId={runId} /> : <Jobs />}
      {isComparing && <CompareDialog saleId={saleId} onClose={() => setComparing(false)} />}
    </>
  );
}

const OUTCOME_TONES: Readonly<Record<string, Tone>> = {
  match: 'ok',
  findings: 'bad',
  partly: 'warn',
  none: 'idle',
  failed: 'bad',
  running: 'info',
};

function Outcome({ outcome }: { readonly outcome: string | null }) {
  const { t } = useWords();
  const word = outcome ?? 'running';
  return <Badge tone={OUTCOME_TONES[word] ?? 'idle'}>{wordIn(t.reconcile.outcomes, word)}</Badge>;
}

function Runs({ openId }: { readonly openId: string | null }) {
  const { t, f } = useWords();
  const [filter, setFilter] = useFilter(['saleId'] as const);
  const runs = usePages<ReconcileRun>('/admin/v1/reconcile/runs', filter, { rows: 'runs', place: 'before' });
  const open = runs.rows.find((one) => one.runId === openId);
  const show = (runId: string | null): void =>
    navigate(pathOf({ screen: 'reconcile', tab: 'runs', runId }) + queryOf(filter));
  const columns: readonly Column<ReconcileRun>[] = [
    { name: '#', isNumber: true, width: '80px', phoneWidth: '48px', cell: ({ runId }) => <code>{runId}</code> },
    {
      name: t.reconcile.outcome,
      width: '140px',
      phoneWidth: '104px',
      cell: ({ outcome }) => <Outcome outcome={outcome} />,
    },
    {
      name: t.reconcile.findings,
      cell: ({ findings }) =>
        findings.length === 0 ? <span class="faint">–</span> : <FindingCounts findings={findings} />,
    },
    {
      name: t.common.sale,
      hides: 'phone',
      width: '110px',
      cell: ({ saleId }) =>
        saleId === null ? <span class="faint">{t.reconcile.allSales}</span> : <code>{saleId}</code>,
    },
    {
      name: t.reconcile.applied,
      hides: 'phone',
      width: '110px',
      cell: ({ applied }) => (applied ? t.reconcile.repairs : <span class="faint">{t.reconcile.lookedOnly}</span>),
    },
    { name: t.common.actor, hides: 'phone', width: '150px', cell: ({ actor }) => <Cut text={actor} /> },
    {
      name: t.reconcile.took,
      isNumber: true,
      hides: 'narrow',
      width: '90px',
      cell: ({ startedAt, finishedAt }) =>
        finishedAt === null ? '–' : f.duration(Date.parse(finishedAt) - Date.parse(startedAt)),
    },
    {
      name: t.reconcile.started,
      width: '140px',
      phoneWidth: '128px',
      cell: ({ startedAt }) => <Time at={startedAt} />,
    },
  ];
  return (
    <Panel flush>
      <FilterBar fields={[{ name: 'saleId', label: t.common.sale, kind: 'text' }]} values={filter} onChange={setFilter}>
        <Freshness {...runs} />
      </FilterBar>
      <Table
        label={t.reconcile.runs}
        columns={columns}
        {...runs.list}
        keyOf={({ runId }) => runId}
        nameOf={({ runId }) => t.reconcile.run(runId)}
        onOpen={({ runId }) => show(runId)}
        isOpen={({ runId }) => runId === openId}
        empty={<Empty title={t.reconcile.emptyRuns} text={t.reconcile.emptyRunsText} icon="reconcile" />}
      />
      {openId !== null && !(runs.isLoading && open === undefined) && (
        <Dialog title={t.reconcile.run(openId)} onClose={() => show(null)} shape="side">
          {open === undefined ? <Empty title={t.reconcile.runNotFound} icon="info" /> : <Run run={open} />}
        </Dialog>
      )}
    </Panel>
  );
}

function FindingCounts({ findings }: { readonly findings: readonly Finding[] }) {
  const { t, f } = useWords();
  const counts = new Map<string, number>();
  for (const { kind } of findings) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return (
    <ul class="chips">
      {[...counts].map(([kind, count]) => (
        <li key={kind} title={wordIn(t.reconcile.kindHints, kind)}>
          {wordIn(t.reconcile.kinds, kind)} <b class="number">{f.number(count)}</b>
        </li>
      ))}
    </ul>
  );
}

function Run({ run }: { readonly run: ReconcileRun }) {
  const { t } = useWords();
  return (
    <>
      <Facts
        facts={[
          [t.reconcile.outcome, <Outcome outcome={run.outcome} />],
          [
            t.common.sale,
            run.saleId === null ? (
              t.reconcile.allSales
            ) : (
              <Id text={run.saleId} to={pathOf({ screen: 'sale', saleId: run.saleId })} />
            ),
          ],
          [t.common.actor, run.actor],
          [t.reconcile.started, <Time at={run.startedAt} />],
          [t.reconcile.applied, run.applied ? t.reconcile.repairs : t.reconcile.lookedOnly],
        ]}
      />
      <h3>{t.reconcile.findings}</h3>
      <Findings findings={run.findings} />
      <h3>{t.reconcile.figures}</h3>
      <Figures figures={run.figures} />
    </>
  );
}

const Figures = ({ figures }: { readonly figures: Counts }) => {
  const { f } = useWords();
  return <Facts facts={Object.entries(figures).map(([name, value]) => [name, f.number(value)] as const)} />;
};

function Findings({ findings }: { readonly findings: readonly Finding[] }) {
  const { t } = useWords();
  if (findings.length === 0) return <Empty title={t.reconcile.noFindings} />;
  const rows = findings.map((finding, index) => ({ ...finding, index }));
  const columns: readonly Column<(typeof rows)[number]>[] = [
    {
      name: t.reconcile.kind,
      width: '170px',
      sort: ({ kind }) => kind,
      cell: ({ kind }) => (
        <span title={wordIn(t.reconcile.kindHints, kind)}>
          <b>{wordIn(t.reconcile.kinds, kind)}</b>
        </span>
      ),
    },
    {
      name: t.common.sale,
      width: '80px',
      cell: ({ saleId }) => <SaleLink saleId={saleId} />,
    },
    {
      name: t.reconcile.about,
      cell: ({ kind: _kind, saleId, index: _index, ...rest }) => <About about={rest} saleId={saleId} />,
    },
    {
      name: '',
      hides: 'phone',
      width: '150px',
      cell: ({ kind }) => (
        <small class="faint">
          {(JOB_KINDS as readonly string[]).includes(kind) ? t.reconcile.byItself : t.reconcile.byPerson}
        </small>
      ),
    },
  ];
  return <Table label={t.reconcile.findings} columns={columns} rows={rows} keyOf={({ index }) => String(index)} />;
}

function About({ about, saleId }: { readonly about: Readonly<Record<string, unknown>>; readonly saleId: string }) {
  const { requestId, userId, ...others } = about;
  const rest = Object.entries(others)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => `${name} ${String(value)}`)
    .join(', ');
  return (
    <span class="cut" title={rest}>
      {typeof requestId === 'string' && (
        <Id
          text={requestId}
          label={`${String(userId)}/${requestId}`}
          to={pathOf({ screen: 'purchases', id: requestId }) + queryOf({ saleId, buyer: String(userId) })}
        />
      )}{' '}
      <span class="faint" lang="en">
        {rest}
      </span>
    </span>
  );
}

const JOB_TONES: Readonly<Record<CompensationJob['state'], Tone>> = {
  pending: 'info',
  compensated: 'ok',
  failed_final: 'bad',
};

function jobColumns(
  t: ReturnType<typeof useWords>['t'],
  f: ReturnType<typeof useWords>['f'],
  onRetry: ((job: CompensationJob) => void) | null,
): readonly Column<CompensationJob>[] {
  return [
    {
      name: '#',
      isNumber: true,
      hides: 'phone',
      width: '76px',
      sort: ({ jobId }) => Number(jobId),
      cell: ({ jobId }) => <code>{jobId}</code>,
    },
    {
      name: t.reconcile.kind,
      width: '150px',
      phoneWidth: '84px',
      sort: ({ kind }) => kind,
      cell: ({ kind }) => <span title={wordIn(t.reconcile.kindHints, kind)}>{wordIn(t.reconcile.kinds, kind)}</span>,
    },
    {
      name: t.common.state,
      width: '110px',
      phoneWidth: '92px',
      sort: ({ state }) => state,
      cell: ({ state }) => <Badge tone={JOB_TONES[state]}>{t.reconcile.jobStates[state]}</Badge>,
    },
    {
      name: t.reconcile.about,
      cell: ({ requestId, userId, saleId, detail }) => <About about={{ requestId, userId, detail }} saleId={saleId} />,
    },
    {
      name: t.common.attempts,
      isNumber: true,
      hides: 'phone',
      width: '90px',
      sort: ({ attempts }) => attempts,
      cell: ({ attempts }) => f.number(attempts),
    },
    {
      name: t.reconcile.lastError,
      hides: 'narrow',
      cell: ({ lastError }) => <Cut text={lastError} lang="en" />,
    },
    {
      name: t.reconcile.due,
      hides: 'phone',
      width: '110px',
      sort: ({ availableAt }) => availableAt,
      cell: ({ state, availableAt }) => (state === 'pending' ? <Ago at={availableAt} /> : <span class="faint">–</span>),
    },
    ...(onRetry === null
      ? []
      : [
          {
            name: t.common.action,
            width: '120px',
            phoneWidth: '108px',
            cell: (job: CompensationJob) =>
              job.state !== 'compensated' && <Button onClick={() => onRetry(job)}>{t.reconcile.retryNow}</Button>,
          },
        ]),
  ];
}

function Jobs() {
  const { api, me } = useApp();
  const { t, f } = useWords();
  const [filter, setFilter] = useFilter(['state', 'kind', 'saleId'] as const);
  const jobs = usePages<CompensationJob>('/admin/v1/reconcile/jobs', filter, { rows: 'jobs', place: 'after' });
  const [picked, setPicked] = useState<CompensationJob | null>(null);
  const retry = async ({ jobId }: CompensationJob): Promise<string> => {
    const { outcome } = await api.ask<{ outcome: 'retried' | 'compensated' }>(
      `/admin/v1/reconcile/jobs/${jobId}/retry`,
      { method: 'POST' },
    );
    return outcome === 'retried' ? t.reconcile.retried : t.reconcile.alreadyDone;
  };
  return (
    <Panel flush>
      <FilterBar
        fields={[
          choice('state', t.common.state, JOB_STATES, t.reconcile.jobStates),
          choice('kind', t.reconcile.kind, JOB_KINDS, t.reconcile.kinds),
          { name: 'saleId', label: t.common.sale, kind: 'text' },
        ]}
        values={filter}
        onChange={setFilter}
      >
        <Freshness {...jobs} />
      </FilterBar>
      <Table
        label={t.reconcile.jobs}
        columns={jobColumns(t, f, may(me.role, 'operator') ? setPicked : null)}
        {...jobs.list}
        keyOf={({ jobId }) => jobId}
        empty={<Empty title={t.reconcile.emptyJobs} text={t.reconcile.emptyJobsText} />}
      />
      {picked && (
        <Confirm
          title={t.reconcile.retryTitle}
          text={t.reconcile.retryText}
          verb={t.reconcile.retryNow}
          run={() => retry(picked)}
          audit={{ subject: `compensation_job:${picked.jobId}` }}
          onClose={() => setPicked(null)}
          onDone={jobs.reload}
        >
          <Facts
            facts={[
              [t.reconcile.kind, wordIn(t.reconcile.kinds, picked.kind)],
              [t.reconcile.about, <span lang="en">{picked.detail}</span>],
              [t.common.state, t.reconcile.jobStates[picked.state]],
              [t.common.attempts, f.number(picked.attempts)],
              [t.reconcile.lastError, picked.lastError === null ? '–' : <span lang="en">{picked.lastError}</span>],
              [t.reconcile.due, <Time at={picked.availableAt} />],
            ]}
          />
        </Confirm>
      )}
    </Panel>
  );
}

/** First compares, then offers to repair the findings. */
function CompareDialog({ saleId: initial, onClose }: { readonly saleId: string; readonly onClose: () => void }) {
  const { api, me } = useApp();
  const { t, f } = useWords();
  const [saleId, setSaleId] = useState(initial);
  const [report, setReport] = useState<SaleReport | null>(null);
  const [isResolving, setResolving] = useState(false);
  const compare = async (apply: boolean): Promise<SaleReport> =>
    api.ask<SaleReport>(`/admin/v1/reconcile/sales/${saleId.trim()}`, { method: 'POST', query: { apply } });
  const shown = (found: SaleReport) => (
    <>
      <Note tone={found.outcome === 'match' ? 'ok' : 'warn'}>
        {t.reconcile.done} <Outcome outcome={found.outcome} />
      </Note>
      <Findings findings={found.findings} />
      {found.jobs.length > 0 && (
        <Table
          label={t.reconcile.jobs}
          columns={jobColumns(t, f, null)}
          rows={found.jobs}
          keyOf={({ jobId }) => jobId}
        />
      )}
      <Figures figures={found.figures} />
    </>
  );
  if (isResolving) return <LostDialog saleId={saleId.trim()} onClose={onClose} />;
  if (report !== null) {
    const isLost = report.findings.some(({ kind }) => kind === 'order_lost');
    return (
      <Confirm
        key="apply"
        title={t.reconcile.applyTitle}
        text={t.reconcile.applyText}
        verb={t.reconcile.apply}
        canRun={report.findings.some(({ kind }) => (JOB_KINDS as readonly string[]).includes(kind))}
        run={async () => shown(await compare(true))}
        audit={{ subject: `sale:${saleId.trim()}` }}
        onClose={onClose}
      >
        {shown(report)}
        {isLost && may(me.role, 'admin') && (
          <Button onClick={() => setResolving(true)}>{t.reconcile.resolveTitle}</Button>
        )}
      </Confirm>
    );
  }
  return (
    <Confirm
      key="look"
      title={t.reconcile.compareTitle}
      text={t.reconcile.compareText}
      verb={t.reconcile.compare}
      canRun={/^[1-9]\d*$/.test(saleId.trim())}
      run={async () => {
        setReport(await compare(false));
        return null;
      }}
      audit={{ subject: `sale:${saleId.trim()}` }}
      onClose={onClose}
    >
      <TextField label={t.reconcile.saleId} value={saleId} onInput={setSaleId} />
    </Confirm>
  );
}

const RESOLVE_MODES = ['auto', 'write', 'fail'] as const;

/** First shows what would happen to each lost order, then does it, one request after another. */
function LostDialog({ saleId, onClose }: { readonly saleId: string; readonly onClose: () => void }) {
  const { api } = useApp();
  const { t, f } = useWords();
  const [mode, setMode] = useState<(typeof RESOLVE_MODES)[number]>('auto');
  const [preview, setPreview] = useState<ResolvedSale | null>(null);
  const ask = (dryRun: boolean): Promise<ResolvedSale> =>
    api.ask<ResolvedSale>(`/admin/v1/reconcile/sales/${saleId}/lost-orders`, {
      method: 'POST',
      query: { mode, dryRun },
    });
  const shown = ({ counts, more, silent, orders }: ResolvedSale) => (
    <>
      <Facts
        facts={(['written', 'failed', 'recorded', 'left'] as const).map((word) => [
          t.reconcile.resolved[word],
          f.number(counts[word]),
        ])}
      />
      {more && <Note tone="warn">{t.reconcile.resolveMore}</Note>}
      {silent !== null && (
        <Note tone="warn">
          {t.reconcile.resolveSilent} <span lang="en">{silent}</span>
        </Note>
      )}
      <Table
        label={t.reconcile.resolveTitle}
        columns={[
          {
            name: t.common.state,
            width: '110px',
            cell: ({ outcome }) => (
              <Badge tone={outcome === 'left' ? 'bad' : 'info'}>{t.reconcile.resolved[outcome]}</Badge>
            ),
          },
          {
            name: t.reconcile.about,
            cell: ({ userId, requestId, orderId, evidence, note }) => (
              <About
                about={{ userId, requestId, orderId, evidence: evidence.join(' ') || null, note }}
                saleId={saleId}
              />
            ),
          },
        ]}
        rows={orders}
        keyOf={({ userId, requestId }) => `${userId}/${requestId}`}
      />
    </>
  );
  if (preview === null) {
    return (
      <Confirm
        key="preview"
        title={t.reconcile.resolveTitle}
        text={t.reconcile.resolveText}
        verb={t.reconcile.resolvePreview}
        run={async () => {
          setPreview(await ask(true));
          return null;
        }}
        audit={{ subject: `sale:${saleId}` }}
        onClose={onClose}
      >
        <Choice
          label={t.reconcile.resolveMode}
          value={mode}
          options={RESOLVE_MODES.map((one) => [one, t.reconcile.resolveModes[one]] as const)}
          onPick={setMode}
        />
      </Confirm>
    );
  }
  return (
    <Confirm
      key="resolve"
      title={t.reconcile.resolveTitle}
      text={t.reconcile.resolveModes[mode]}
      verb={t.reconcile.resolve}
      isDangerous
      canRun={preview.orders.length > 0}
      run={async () => {
        let done = await ask(false);
        for (let last = done; last.more && last.counts.left === 0;) {
          last = await ask(false);
          done = joined(done, last);
        }
        return shown(done);
      }}
      audit={{ subject: `sale:${saleId}` }}
      onClose={onClose}
    >
      {shown(preview)}
    </Confirm>
  );
}

/** Adds up two requests, and keeps the rows of the newer one. */
function joined({ counts }: ResolvedSale, next: ResolvedSale): ResolvedSale {
  const sum = (word: keyof ResolvedSale['counts']): number => counts[word] + next.counts[word];
  return {
    ...next,
    counts: { written: sum('written'), failed: sum('failed'), recorded: sum('recorded'), left: sum('left') },
  };
}
