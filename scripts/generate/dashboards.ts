/**
 * The Grafana dashboards of the chart. Each query selects the manager by `job`, which is added here; test/chart/monitoring
 * compares every query with what a manager serves.
 */

interface Panel {
  readonly title: string
  /** Stat: one number, red from 1 on where `isBad`. @default timeseries */
  readonly type?: 'stat' | 'timeseries' | 'table'
  readonly unit?: 's' | 'bytes' | 'percentunit' | 'ops' | 'short'
  readonly isBad?: boolean
  /** Expression, with `{…}` after each metric, and legend. */
  readonly queries: readonly (readonly [expr: string, legend: string])[]
}

export interface Dashboard {
  readonly name: string
  readonly title: string
  readonly rows: readonly (readonly [title: string, panels: readonly Panel[]])[]
}

const RATE = '[$__rate_interval]'

const count = (title: string, expr: string, isBad = false): Panel => ({
  title,
  type: 'stat',
  isBad,
  queries: [[expr, '']],
})
const rates = (title: string, metric: string, label: string): Panel => ({
  title,
  unit: 'ops',
  queries: [[`sum by (${label}) (rate(${metric}${RATE}))`, `{{${label}}}`]],
})
const levels = (title: string, metric: string, ...labels: string[]): Panel => ({
  title,
  queries: [[`sum by (${labels.join(', ')}) (${metric})`, labels.map((label) => `{{${label}}}`).join(' ')]],
})
const p99 = (title: string, metric: string, label: string): Panel => ({
  title,
  unit: 's',
  queries: [[`histogram_quantile(0.99, sum by (le, ${label}) (rate(${metric}${RATE})))`, `{{${label}}}`]],
})

export const DASHBOARDS: readonly Dashboard[] = [
  {
    name: 'manager',
    title: 'Seamark: manager',
    rows: [
      [
        'Now',
        [
          count('Leaders', 'sum(leader_election_master_status{})'),
          count('Paused', 'max(seamark_paused{})', true),
          count('Objects held by publish', 'max(seamark_publish_held{})', true),
          count('Reconciles that threw (1 h)', 'sum(increase(controller_runtime_reconcile_panics_total{}[1h]))', true),
        ],
      ],
      [
        'Controllers',
        [
          rates('Reconciles', 'controller_runtime_reconcile_total{}', 'controller'),
          rates('Failed reconciles', 'controller_runtime_reconcile_errors_total{}', 'controller'),
          p99('Reconcile time, 99 %', 'controller_runtime_reconcile_time_seconds_bucket{}', 'controller'),
          levels('Keys that wait', 'workqueue_depth{}', 'controller'),
          p99('Time in the queue, 99 %', 'workqueue_queue_duration_seconds_bucket{}', 'controller'),
          rates('Keys tried again', 'workqueue_retries_total{}', 'controller'),
        ],
      ],
      [
        'Sources',
        [
          levels('Sources by kind and reason', 'seamark_publish_sources{}', 'kind', 'reason'),
          rates('Certificates applied', 'contour_plus_certificates_applied_total{}', 'result'),
          rates("Others' changes against our decision", 'seamark_shadow_changes_total{}', 'result'),
        ],
      ],
      [
        'API servers',
        [
          rates('Requests by code', 'rest_client_requests_total{}', 'code'),
          {
            title: 'Quietest watch',
            unit: 's',
            queries: [['max by (cluster, kind) (seamark_watch_last_event_age_seconds{})', '{{cluster}} {{kind}}']],
          },
          rates('Watches started again', 'seamark_watch_restarts_total{}', 'reason'),
          levels('Cached objects', 'seamark_cache_objects{}', 'cluster', 'kind'),
          { ...levels('Cached JSON', 'seamark_cache_bytes{}', 'cluster'), unit: 'bytes' },
          levels('HTTP/2 streams', 'seamark_http2_streams{}', 'cluster'),
        ],
      ],
      [
        'Webhooks',
        [
          rates('Requests by code', 'controller_runtime_webhook_requests_total{}', 'code'),
          p99('Answer time, 99 %', 'controller_runtime_webhook_latency_seconds_bucket{}', 'webhook'),
        ],
      ],
      [
        'Process',
        [
          { title: 'CPU', unit: 'short', queries: [[`rate(process_cpu_seconds_total{}${RATE})`, '{{pod}}']] },
          { title: 'Resident memory', unit: 'bytes', queries: [['process_resident_memory_bytes{}', '{{pod}}']] },
          {
            title: 'Event-loop delay',
            unit: 's',
            queries: [['seamark_event_loop_delay_seconds{}', '{{pod}} {{quantile}}']],
          },
          { title: 'Open files', queries: [['process_open_fds{}', '{{pod}}']] },
        ],
      ],
    ],
  },
  {
    name: 'fleet',
    title: 'Seamark: fleet',
    rows: [
      [
        'Now',
        [
          count(
            'Clusters that do not answer',
            'count(max by (cluster) (seamark_fleet_cluster_reachable{}) == 0)',
            true,
          ),
          count('Leaves that serve', 'sum(seamark_fleet_leaves{phase="Active"})'),
          count('Leaves that are unhealthy', 'sum(seamark_fleet_leaves{phase="Unhealthy"})', true),
          count('Leaves held', 'max(seamark_fleet_leaves_held{})', true),
        ],
      ],
      [
        'Leaves',
        [
          levels('Leaves by phase', 'seamark_fleet_leaves{}', 'phase'),
          levels('Leaves that serve, by cluster', 'seamark_fleet_leaves{phase="Active"}', 'cluster'),
          levels('Cluster answers', 'seamark_fleet_cluster_reachable{}', 'cluster'),
          rates('Leaves changed by others', 'seamark_fleet_drift_corrections_total{}', 'cluster'),
        ],
      ],
      [
        'Load balancers',
        [
          count('Without a healthy endpoint', 'count(max by (loadbalancer) (loadbalancer_health{}) == 0)', true),
          {
            title: 'Endpoints that fail their health check',
            type: 'table',
            queries: [['max by (loadbalancer, endpoint) (endpoint_health{}) == 0', '']],
          },
          levels('Healthy endpoints', 'endpoint_health{}', 'loadbalancer'),
          levels('Endpoints in the answer', 'endpoint_active{}', 'loadbalancer'),
        ],
      ],
      [
        'Wildcards',
        [
          levels('Targets', 'seamark_wildcard_targets{}', 'cluster'),
          count('Wildcards held', 'max(seamark_wildcard_held{})', true),
        ],
      ],
    ],
  },
  {
    name: 'dns',
    title: 'Seamark: DNS',
    rows: [
      [
        'Now',
        [
          count('Zones not served', 'count(min by (zone) (seamark_dns_zone_served{}) == 0)', true),
          count(
            'Zones that cannot be read or written',
            'count(max by (provider, zone) (seamark_records_zone_stale{}) == 1)',
            true,
          ),
          count('Records held', 'sum(seamark_records_held{})', true),
          count('Changes refused (1 h)', 'sum(increase(seamark_records_changes_total{result="refused"}[1h]))', true),
        ],
      ],
      [
        'Records',
        [
          {
            title: 'Changes sent',
            unit: 'ops',
            queries: [
              [
                `sum by (zone, op, result) (rate(seamark_records_changes_total{}${RATE}))`,
                '{{zone}} {{op}} {{result}}',
              ],
            ],
          },
          levels('Changes in the last plan', 'seamark_records_plan_changes{}', 'zone', 'op'),
          levels('Held, by reason', 'seamark_records_held{}', 'zone', 'reason'),
          {
            title: 'Since the zone was as desired',
            unit: 's',
            queries: [
              [
                'time() - max by (provider, zone) (seamark_records_last_sync_timestamp_seconds{})',
                '{{provider}} {{zone}}',
              ],
            ],
          },
        ],
      ],
      [
        'DNS services',
        [
          {
            title: 'Calls',
            unit: 'ops',
            queries: [
              [
                `sum by (provider, call, reason) (rate(seamark_provider_calls_total{}${RATE}))`,
                '{{provider}} {{call}} {{reason}}',
              ],
            ],
          },
          p99('Duration of calls, 99 %', 'seamark_provider_call_duration_seconds_bucket{}', 'provider'),
          {
            title: 'Share of time that calls wait for a rate limit',
            unit: 'percentunit',
            queries: [
              [`sum by (provider) (rate(seamark_provider_limiter_wait_seconds_total{}${RATE}))`, '{{provider}}'],
            ],
          },
        ],
      ],
      [
        'DNS server',
        [
          rates('Questions by type', 'seamark_dns_queries_total{}', 'type'),
          rates('Answers by rcode', 'seamark_dns_responses_total{}', 'rcode'),
          rates('Not answered in full', 'seamark_dns_dropped_total{}', 'reason'),
          { title: 'TCP connections', queries: [['seamark_dns_tcp_connections{}', '{{pod}}']] },
          { title: 'Serials', queries: [['seamark_dns_zone_serial{}', '{{zone}} {{pod}}']] },
          rates('Zone transfers', 'seamark_dns_transfers_total{}', 'kind'),
          { title: 'Updates', unit: 'ops', queries: [[`sum(rate(seamark_dns_updates_total{}${RATE}))`, 'updates']] },
        ],
      ],
    ],
  },
  {
    name: 'gateway',
    title: 'Seamark: gateway',
    rows: [
      [
        'Now',
        [
          count('Hosts', 'max(seamark_gateway_hosts{})'),
          count('Routes', 'max(seamark_gateway_routes{})'),
          count('Backends', 'max(seamark_gateway_backends{})'),
          count('Objects not served as written', 'sum(max by (kind) (seamark_gateway_invalid_objects{}))', true),
          count('Listeners that cannot be bound', 'max(seamark_gateway_port_faults{})', true),
          count('Envoys connected', 'sum(seamark_gateway_xds_streams{})'),
        ],
      ],
      [
        'Requests of the built-in proxy',
        [
          rates('Requests by class of the status', 'seamark_gateway_requests_total{}', 'class'),
          {
            title: 'Share of 5xx',
            unit: 'percentunit',
            queries: [
              [
                `sum(rate(seamark_gateway_requests_total{class="5xx"}${RATE})) / sum(rate(seamark_gateway_requests_total{}${RATE}))`,
                '5xx',
              ],
            ],
          },
          { title: 'Connections of clients', queries: [['seamark_gateway_connections{}', '{{pod}}']] },
          {
            title: 'Conditions that take too many steps',
            unit: 'ops',
            queries: [[`sum(rate(seamark_gateway_regex_exceeded_total{}${RATE}))`, 'requests']],
          },
        ],
      ],
      [
        'Configuration',
        [
          levels('Objects not served as written', 'seamark_gateway_invalid_objects{}', 'kind'),
          levels('Rejected by Envoy', 'seamark_gateway_xds_rejected{}', 'type'),
          {
            title: 'Builds',
            unit: 'ops',
            queries: [
              [`sum by (result) (rate(controller_runtime_reconcile_total{controller="gateway"}${RATE}))`, '{{result}}'],
            ],
          },
          p99(
            'Time of a build, 99 %',
            'controller_runtime_reconcile_time_seconds_bucket{controller="gateway"}',
            'controller',
          ),
        ],
      ],
    ],
  },
]

/** Rows of the grid are 24 wide. */
const WIDTH = { stat: 4, timeseries: 8, table: 8 }
const HEIGHT = { stat: 4, timeseries: 8, table: 8 }
const DATASOURCE = { type: 'prometheus', uid: '${datasource}' }

export function dashboardJson({ name, title, rows }: Dashboard): string {
  const panels: object[] = []
  let [x, y, line] = [0, 0, 0]
  const wrap = (): void => {
    ;[x, y, line] = [0, y + line, 0]
  }
  for (const [rowTitle, own] of rows) {
    wrap()
    panels.push({ id: panels.length + 1, type: 'row', title: rowTitle, gridPos: { x: 0, y, w: 24, h: 1 }, panels: [] })
    y++
    for (const panel of own) {
      const { type = 'timeseries' } = panel
      if (x + WIDTH[type] > 24) wrap()
      panels.push({ id: panels.length + 1, ...panelJson(panel), gridPos: { x, y, w: WIDTH[type], h: HEIGHT[type] } })
      x += WIDTH[type]
      line = Math.max(line, HEIGHT[type])
    }
  }
  const dashboard = {
    uid: `seamark-${name}`,
    title,
    tags: ['seamark'],
    timezone: '',
    editable: true,
    refresh: '30s',
    schemaVersion: 39,
    time: { from: 'now-6h', to: 'now' },
    templating: {
      list: [
        { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' },
        {
          name: 'job',
          label: 'Job',
          type: 'query',
          datasource: DATASOURCE,
          query: 'label_values(leader_election_master_status, job)',
          includeAll: true,
          multi: true,
          refresh: 2,
        },
      ],
    },
    panels,
  }
  return `${JSON.stringify(dashboard, undefined, 2)}\n`
}

function panelJson({ title, type = 'timeseries', unit = 'short', isBad = false, queries }: Panel): object {
  const steps = [{ color: 'green', value: null }, ...(isBad ? [{ color: 'red', value: 1 }] : [])]
  return {
    type,
    title,
    datasource: DATASOURCE,
    fieldConfig: {
      // A query that counts what is wrong has no series when nothing is.
      defaults: { unit, ...(type === 'stat' && { noValue: '0', thresholds: { mode: 'absolute', steps } }) },
      overrides: [],
    },
    targets: queries.map(([expr, legendFormat], index) => ({
      refId: String.fromCodePoint(65 + index),
      datasource: DATASOURCE,
      expr: expr.replaceAll(/\{(\}?)/g, (_, end: string) => (end === '' ? '{job=~"$job",' : '{job=~"$job"}')),
      ...(type === 'timeseries' ? { legendFormat } : { instant: true, ...(type === 'table' && { format: 'table' }) }),
    })),
  }
}
