/**
 * Clusters: one card each, in the state that comes first in the order of precedence. The spaces between the parts are for those
 * who take the text without its layout.
 */
import type { JSX } from 'preact'
import { memo } from 'preact/compat'
import type { ClusterView } from '../../api/state.ts'
import { clusterPath } from '../data/paths.ts'
import { Command } from '../parts/command.tsx'
import { Region } from '../parts/region.tsx'
import { Shape } from '../parts/shape.tsx'
import { Age, Until } from '../parts/time.tsx'
import { CLUSTER_LOOKS, countOf, countText, shareText, trafficText } from '../parts/words.ts'
import type { SearchQuery } from './search-query.ts'

export function ClustersRegion({
  clusters,
  search,
}: {
  clusters: readonly ClusterView[]
  search: SearchQuery
}): JSX.Element {
  return (
    <Region title="Clusters" class="clusters" note={clusters.length > 0 && <span>{countOf(clusters.length)}</span>}>
      {clusters.length === 0 ? (
        <div class="empty">
          <p>No cluster is registered.</p>
          <Command command="seamark cluster add CONTEXT" />
        </div>
      ) : (
        <div class="scroll" tabIndex={0} role="group" aria-label="Clusters and their states">
          <ul role="list" class="cards">
            {clusters.map((cluster) => (
              <ClusterCard
                key={cluster.name}
                cluster={cluster}
                isDimmed={!search.isEmpty && !search.cluster(cluster)}
              />
            ))}
          </ul>
        </div>
      )}
    </Region>
  )
}

const ClusterCard = memo(function ClusterCard({
  cluster,
  isDimmed,
}: {
  cluster: ClusterView
  isDimmed: boolean
}): JSX.Element {
  const { name, state, share, answeredHosts, since, answersStill, traffic, until } = cluster
  const { shape, tone, word } = CLUSTER_LOOKS[state]
  const isServing = state === 'Serving'
  return (
    <li class={`card ${isDimmed ? 'dimmed' : ''}`}>
      <div class="card-head">
        <Shape name={shape} tone={tone} />
        <a href={clusterPath(name)} title={name}>
          {name}
        </a>{' '}
        <span class={`word ${tone}`}>{word}</span>{' '}
      </div>
      <svg class="share" width="100%" height="4" aria-hidden="true" focusable="false">
        <rect class="share-all" width="100%" height="4" rx="2" />
        <rect class={`share-own ${tone}`} width={`${share * 100}%`} height="4" rx="2" />
      </svg>
      <div class="card-line">
        {shareText(share)} of answers, {countText(answeredHosts, 'host')}{' '}
      </div>
      {traffic !== undefined && <div class="card-line">{trafficText(traffic)} </div>}
      {answersStill && (
        <div class="card-line">
          <strong class={tone}>answers still</strong>{' '}
        </div>
      )}
      {!isServing && since !== undefined && (
        <div class="card-line">
          for <Age key={since} since={since} />
          {until !== undefined && <Until key={until} at={until} before=", " after=" left" />}
        </div>
      )}
    </li>
  )
})
