import type { Condition, LiveSale, RunningProgram } from '../api/types.js';
import { refusedIn } from '../logic/live-store.js';
import { pathOf } from '../logic/routes.js';
import { queryOf } from '../logic/query.js';
import type { Tone } from '../logic/time-line.js';
import { Ago, Badge, Figure, Link, Panel, ScreenHead } from '../parts/basics.js';
import { Sparkline, StockBar } from '../parts/small-charts.js';
import { Empty, Failure, Loading, Note } from '../parts/states.js';
import { Table, type Column } from '../parts/table.js';
import { Refusals, SaleState } from '../parts/words.js';
import { navigate, useApp, useNow, useStore, useWords } from '../shell/hooks.js';
import { useStaleText } from '../shell/frame.js';

/** Shows all sales as they are now, and everything that needs attention. */
export function LiveScreen() {
  const { live } = useApp();
  const { t, f } = useWords();
  const { snapshot, trouble } = useStore(live.state);
  const stale = useStaleText();
  if (snapshot === null) {
    return (
      <>
        <ScreenHead title={t.live.title} />
        <Panel title={t.live.waitingFirst}>{trouble === null ? <Loading /> : <Failure error={trouble} />}</Panel>
      </>
    );
  }
  const { sales, moreSales, conditions, programs, missing } = snapshot;
  const isSure = !conditions.some(({ name }) => name === 'ProgramsUnknown');
  const rates = live.rates(null);
  const sumOf = (of: (sale: LiveSale) => number | null): number | null => {
    const known = sales.map(of).filter((value) => value !== null);
    return known.length === 0 && sales.length > 0 ? null : known.reduce((sum, value) => sum + value, 0);
  };
  const oldestMs = Math.max(-1, ...sales.map(({ pendingOldestMs }) => pendingOldestMs ?? -1));
  const shown = (value: number | null): string => (value === null ? '–' : f.number(value));
  const figures = [
    {
      name: t.live.accepted,
      hint: t.live.acceptedHint,
      value: sumOf((sale) => sale.acceptedPerSecond),
      values: rates.accepted,
      line: 1,
    },
    {
      name: t.live.landed,
      hint: t.live.landedHint,
      value: sumOf((sale) => sale.landedPerSecond),
      values: rates.landed,
      line: 2,
    },
    { name: t.live.refused, hint: t.live.refusedHint, value: sumOf(refusedIn), values: rates.refused, line: 3 },
  ] as const;
  return (
    <div class={stale === null ? undefined : 'is-stale'}>
      <ScreenHead
        title={t.live.title}
        under={
          stale === null ? <span class="number">{f.time(snapshot.atMs)}</span> : <span class="stale">{stale}</span>
        }
      />
      {missing.length > 0 && (
        <Note tone="warn">
          {t.live.missing}: <span lang="en">{missing.join(' ')}</span>
        </Note>
      )}
      <div class="figures">
        {figures.map(({ name, hint, value, values, line }) => (
          <Figure key={name} label={name} value={shown(value)} unit={t.live.perSecond} hint={hint}>
            <Sparkline values={values} line={line} label={t.live.chart(name, shown(value))} />
          </Figure>
        ))}
        <Figure
          label={t.live.pending}
          hint={t.live.pendingHint}
          value={shown(sumOf((sale) => sale.pending))}
          under={oldestMs < 0 ? t.live.batches : t.live.oldest(f.duration(oldestMs))}
          {...(oldestMs > 10_000 && { tone: 'warn' as const })}
        />
        <Figure
          label={t.live.programs}
          value={isSure ? f.number(programs.length) : '–'}
          under={<Programs programs={programs} isSure={isSure} />}
        />
      </div>
      <Panel title={t.live.conditions} flush>
        <Conditions conditions={conditions} />
      </Panel>
      <Panel title={t.live.sales} flush>
        <Sales sales={sales} />
        {moreSales > 0 && <p class="panel-foot">{t.live.moreSales(f.number(moreSales))}</p>}
      </Panel>
    </div>
  );
}

function Programs({ programs, isSure }: { readonly programs: readonly RunningProgram[]; readonly isSure: boolean }) {
  const { t, f } = useWords();
  const kinds = ['api', 'worker', 'keeper'] as const;
  return (
    <span class="programs">
      {kinds.map((kind) => {
        const known = programs.filter((program) => program.kind === kind).length;
        return <span key={kind}>{t.live.running[kind](known > 0 || isSure ? f.number(known) : '–')}</span>;
      })}
    </span>
  );
}

const TONES: Readonly<Record<Condition['severity'], Tone>> = { page: 'bad', ticket: 'warn', info: 'info' };

function Conditions({ conditions }: { readonly conditions: readonly Condition[] }) {
  const { t } = useWords();
  if (conditions.length === 0) return <Empty title={t.live.noConditions} text={t.live.noConditionsText} />;
  return (
    <ul class="conditions">
      {conditions.map((condition) => (
        <li key={condition.name + condition.about}>
          <Badge tone={TONES[condition.severity]}>{t.live.severity[condition.severity]}</Badge>
          <div>
            <Link to={placeOf(condition)}>
              <span lang="en">{condition.text}</span>
            </Link>
            <small>
              <code>{condition.name}</code>
              {condition.about !== null && <code>{condition.about}</code>}
            </small>
          </div>
          <span class="since">
            {t.live.firstSeen} <Ago at={condition.sinceMs} />
          </span>
        </li>
      ))}
    </ul>
  );
}

/** Returns the screen with more details about a condition. */
function placeOf({ name, about }: Condition): string {
  if (/^Seckill(Sale|Units)/.test(name) && about !== null && /^[1-9]\d*$/.test(about))
    return pathOf({ screen: 'sale', saleId: about });
  if (/DeadLettersNotCollected|ConsumersBehind/.test(name)) return pathOf({ screen: 'messages', tab: 'lag' });
  if (/DeadLetter/.test(name))
    return pathOf({ screen: 'dead-letters', deadLetterId: null }) + queryOf({ state: 'parked' });
  if (/HalfMessagesDiscarded/.test(name)) return pathOf({ screen: 'messages', tab: 'discarded' });
  if (/HalfMessages/.test(name)) return pathOf({ screen: 'messages', tab: 'halves' });
  if (/Refund|Payments/.test(name)) return pathOf({ screen: 'refunds' });
  if (/Compensation/.test(name)) return pathOf({ screen: 'reconcile', tab: 'jobs', runId: null });
  if (/Differ/.test(name)) return pathOf({ screen: 'reconcile', tab: 'runs', runId: null });
  if (/Rules/.test(name)) return pathOf({ screen: 'rules', tab: 'in-force' });
  if (/Sales/.test(name)) return pathOf({ screen: 'sales', tab: 'week' });
  return pathOf({ screen: 'health' });
}

function Sales({ sales }: { readonly sales: readonly LiveSale[] }) {
  const { live } = useApp();
  const { t, f } = useWords();
  const rate = (name: string, sale: LiveSale, value: number | null, which: 'accepted' | 'landed', line: 1 | 2) => (
    <div class="rate">
      <b class="number">{value === null ? '–' : f.number(value)}</b>
      <Sparkline
        values={live.rates(sale.saleId)[which]}
        line={line}
        label={t.live.chart(name, value === null ? '–' : f.number(value))}
      />
    </div>
  );
  const columns: readonly Column<LiveSale>[] = [
    {
      name: t.common.sale,
      width: '20%',
      phoneWidth: '124px',
      sort: ({ title }) => title,
      cell: ({ saleId, title, state }) => (
        <div class="two-lines">
          <Link to={pathOf({ screen: 'sale', saleId })} class="strong cut">
            {title}
          </Link>
          <small>
            <SaleState state={state} /> <code>{saleId}</code>
          </small>
        </div>
      ),
    },
    {
      name: t.live.stock,
      width: '17%',
      phoneWidth: '108px',
      sort: ({ left }) => left,
      cell: (sale) => <StockBar {...sale} />,
    },
    {
      name: t.live.accepted + t.live.perSecond,
      isNumber: true,
      hint: t.live.acceptedHint,
      sort: (sale) => sale.acceptedPerSecond,
      cell: (sale) => rate(t.live.accepted, sale, sale.acceptedPerSecond, 'accepted', 1),
    },
    {
      name: t.live.landed + t.live.perSecond,
      isNumber: true,
      hides: 'phone',
      hint: t.live.landedHint,
      sort: (sale) => sale.landedPerSecond,
      cell: (sale) => rate(t.live.landed, sale, sale.landedPerSecond, 'landed', 2),
    },
    {
      name: t.live.refused + t.live.perSecond,
      hides: 'narrow',
      width: '180px',
      hint: t.live.refusedHint,
      sort: refusedIn,
      cell: ({ refusedPerSecond }) =>
        refusedPerSecond === null ? (
          <span class="faint">{t.live.noRates}</span>
        ) : (
          <Refusals counts={refusedPerSecond} most={1} />
        ),
    },
    {
      name: t.live.pending,
      isNumber: true,
      hides: 'phone',
      hint: t.live.pendingHint,
      sort: ({ pending }) => pending,
      cell: ({ pending, pendingOldestMs }) => (
        <div class="two-lines">
          <b class="number">{pending === null ? '–' : f.number(pending)}</b>
          <small class={pendingOldestMs !== null && pendingOldestMs > 10_000 ? 'stale' : ''}>
            {pendingOldestMs === null ? '' : f.duration(pendingOldestMs)}
          </small>
        </div>
      ),
    },
    {
      name: t.live.window,
      hides: 'narrow',
      width: '156px',
      sort: ({ closesAtMs }) => closesAtMs,
      cell: (sale) => <WindowLeft {...sale} />,
    },
  ];
  return (
    <Table
      label={t.live.sales}
      columns={columns}
      rows={sales}
      keyOf={({ saleId }) => saleId}
      nameOf={({ title }) => title}
      onOpen={({ saleId }) => navigate(pathOf({ screen: 'sale', saleId }))}
      empty={
        <Empty title={t.live.noSales} text={t.live.noSalesText} icon="sales">
          <Link to={pathOf({ screen: 'sales', tab: 'week' })} class="button plain">
            {t.live.toPlan}
          </Link>
        </Empty>
      }
    />
  );
}

/** Shows the time until a sale opens, or until it closes. */
export function WindowLeft({ opensAtMs, closesAtMs }: { readonly opensAtMs: number; readonly closesAtMs: number }) {
  const { t, f } = useWords();
  const now = useNow();
  const left = (atMs: number): string => f.duration(Math.ceil((atMs - now) / 1000) * 1000);
  const text =
    now < opensAtMs
      ? t.live.opensIn(left(opensAtMs))
      : now < closesAtMs
        ? t.live.closesIn(left(closesAtMs))
        : t.live.over;
  return (
    <span class="number" title={`${f.dateTime(opensAtMs)} – ${f.dateTime(closesAtMs)}`}>
      {text}
    </span>
  );
}
