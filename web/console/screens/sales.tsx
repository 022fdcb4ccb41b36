import { useState } from 'preact/hooks';
import { SALE_STATES, type PlannedSale, type Sale } from '../api/types.js';
import { wordIn } from '../i18n/language.js';
import { may } from '../logic/permissions.js';
import { pathOf, SALE_TABS } from '../logic/routes.js';
import type { Tone } from '../logic/time-line.js';
import { Ago, Badge, Button, Id, Link, Panel, ScreenHead, Tabs, Time } from '../parts/basics.js';
import { choice, FilterBar } from '../parts/fields.js';
import { Empty, Freshness, Shown } from '../parts/states.js';
import { Table, type Column } from '../parts/table.js';
import { SaleState } from '../parts/words.js';
import { navigate, useApp, useFilter, useNow, usePages, useResource, useWords } from '../shell/hooks.js';
import { NewSaleDialog } from './new-sale.js';

const DAY_MS = 86_400_000;

/** Shows the upcoming sales, and all other sales. */
export function SalesScreen({ tab }: { readonly tab: (typeof SALE_TABS)[number] }) {
  const { me } = useApp();
  const { t } = useWords();
  const [isNew, setNew] = useState(false);
  return (
    <>
      <ScreenHead
        title={t.sales.title}
        actions={
          may(me.role, 'admin') && (
            <Button icon="plus" kind="main" onClick={() => setNew(true)}>
              {t.sales.create}
            </Button>
          )
        }
      />
      <Tabs
        label={t.sales.title}
        tabs={SALE_TABS.map((one) => ({
          to: pathOf({ screen: 'sales', tab: one }),
          text: t.sales[one],
          current: one === tab,
        }))}
      />
      {tab === 'week' ? <Week /> : <AllSales />}
      {isNew && <NewSaleDialog onClose={() => setNew(false)} />}
    </>
  );
}

const STATUS_TONES: Readonly<Record<PlannedSale['status'], Tone>> = {
  waits: 'idle',
  ready: 'ok',
  not_ready: 'bad',
  by_hand: 'info',
  selling: 'ok',
  paused: 'warn',
  over: 'warn',
  missed: 'bad',
};

function Week() {
  const { t, f } = useWords();
  const plan = useResource<{ sales: readonly PlannedSale[] }>('/admin/v1/sale-plan', { everyMs: 5_000 });
  const nowMs = useNow();
  const [today, tomorrow] = [nowMs, nowMs + DAY_MS].map(f.dayKey);
  const nameOf = (key: string, atMs: number): string =>
    key === today
      ? `${t.sales.today} · ${f.day(atMs)}`
      : key === tomorrow
        ? `${t.sales.tomorrow} · ${f.day(atMs)}`
        : key < (today ?? '')
          ? `${t.sales.before} · ${f.day(atMs)}`
          : f.day(atMs);
  const columns: readonly Column<PlannedSale>[] = [
    { name: t.sales.opens, width: '156px', cell: ({ sale }) => <Time at={sale.opensAt} /> },
    {
      name: t.common.sale,
      cell: ({ sale }) => (
        <div class="two-lines">
          <Link to={pathOf({ screen: 'sale', saleId: sale.saleId })} class="strong cut">
            {sale.title}
          </Link>
          <small>
            <code>{sale.saleId}</code> <Id text={sale.sku} />
          </small>
        </div>
      ),
    },
    {
      name: t.sales.readiness,
      width: '24%',
      cell: ({ status, missing }) => (
        <div class="inline">
          <Badge tone={STATUS_TONES[status]} title={t.sales.statusHint[status]}>
            {t.sales.status[status]}
          </Badge>
          {missing.map((what) => (
            <span key={what} class="missing" title={t.sales.missingLabel}>
              {wordIn(t.sales.missing, what)}
            </span>
          ))}
        </div>
      ),
    },
    { name: t.common.state, hides: 'phone', width: '110px', cell: ({ sale }) => <SaleState state={sale.state} /> },
    {
      name: t.sales.fields.stock,
      isNumber: true,
      hides: 'phone',
      width: '90px',
      cell: ({ sale }) => f.number(sale.stock),
    },
    {
      name: t.sales.warmsAt,
      hides: 'narrow',
      width: '140px',
      cell: ({ warmsAt }) => (warmsAt === null ? <span class="faint">–</span> : <Ago at={warmsAt} />),
    },
    { name: t.sales.closes, hides: 'narrow', width: '140px', cell: ({ sale }) => <Time at={sale.closesAt} /> },
  ];
  return (
    <Shown of={plan}>
      {({ sales }) => {
        const days = groupedByDay(sales, f.dayKey);
        if (sales.length === 0) {
          return (
            <Panel actions={<Freshness {...plan} />}>
              <Empty title={t.sales.emptyWeek} text={t.sales.emptyWeekText} icon="sales" />
            </Panel>
          );
        }
        return [...days].map(([key, ofDay], index) => (
          <Panel
            key={key}
            title={nameOf(key, Date.parse(ofDay[0]?.sale.opensAt ?? ''))}
            flush
            actions={index === 0 && <Freshness {...plan} />}
          >
            <Table
              label={nameOf(key, Date.parse(ofDay[0]?.sale.opensAt ?? ''))}
              columns={columns}
              rows={ofDay}
              keyOf={({ sale }) => sale.saleId}
              onOpen={({ sale }) => navigate(pathOf({ screen: 'sale', saleId: sale.saleId }))}
            />
          </Panel>
        ));
      }}
    </Shown>
  );
}

function groupedByDay(sales: readonly PlannedSale[], dayKey: (atMs: number) => string): Map<string, PlannedSale[]> {
  const days = new Map<string, PlannedSale[]>();
  for (const planned of sales) {
    const key = dayKey(Date.parse(planned.sale.opensAt));
    days.set(key, [...(days.get(key) ?? []), planned]);
  }
  return days;
}

function AllSales() {
  const { t, f } = useWords();
  const [filter, setFilter] = useFilter(['state', 'sku', 'opensFrom', 'opensTo'] as const);
  const sales = usePages<Sale>('/admin/v1/sales', filter, { rows: 'sales', place: 'before' });
  const columns: readonly Column<Sale>[] = [
    {
      name: '#',
      isNumber: true,
      width: '72px',
      sort: ({ saleId }) => Number(saleId),
      cell: ({ saleId }) => <code>{saleId}</code>,
    },
    {
      name: t.sales.fields.title,
      sort: ({ title }) => title,
      cell: ({ saleId, title }) => (
        <Link to={pathOf({ screen: 'sale', saleId })} class="strong cut">
          {title}
        </Link>
      ),
    },
    {
      name: t.common.state,
      width: '110px',
      sort: ({ state }) => state,
      cell: ({ state, retiredAt }) => <SaleState state={state} retired={retiredAt !== null} />,
    },
    {
      name: t.common.sku,
      hides: 'narrow',
      width: '130px',
      sort: ({ sku }) => sku,
      cell: ({ sku }) => <Id text={sku} />,
    },
    {
      name: t.sales.sold,
      isNumber: true,
      hides: 'phone',
      width: '90px',
      sort: ({ sold }) => sold,
      cell: ({ sold }) => f.number(sold),
    },
    {
      name: t.sales.fields.stock,
      isNumber: true,
      hides: 'phone',
      width: '90px',
      sort: ({ stock }) => stock,
      cell: ({ stock }) => f.number(stock),
    },
    {
      name: t.sales.fields.price,
      isNumber: true,
      hides: 'narrow',
      width: '110px',
      sort: ({ priceCents }) => priceCents,
      cell: ({ priceCents, currency }) => f.money(priceCents, currency),
    },
    {
      name: t.sales.opens,
      hides: 'phone',
      width: '140px',
      sort: ({ opensAt }) => opensAt,
      cell: ({ opensAt }) => <Time at={opensAt} />,
    },
    {
      name: t.sales.closes,
      hides: 'narrow',
      width: '140px',
      sort: ({ closesAt }) => closesAt,
      cell: ({ closesAt }) => <Time at={closesAt} />,
    },
  ];
  return (
    <Panel flush>
      <FilterBar
        fields={[
          choice('state', t.common.state, SALE_STATES, t.sale.states),
          { name: 'sku', label: t.common.sku, kind: 'text' },
          { name: 'opensFrom', label: t.sales.opensFrom, kind: 'time' },
          { name: 'opensTo', label: t.sales.opensTo, kind: 'time' },
        ]}
        values={filter}
        onChange={setFilter}
      >
        <Freshness {...sales} />
      </FilterBar>
      <Table
        label={t.sales.all}
        columns={columns}
        {...sales.list}
        keyOf={({ saleId }) => saleId}
        onOpen={({ saleId }) => navigate(pathOf({ screen: 'sale', saleId }))}
        empty={<Empty title={t.sales.emptyAll} text={t.sales.emptyAllText} icon="sales" />}
      />
    </Panel>
  );
}
