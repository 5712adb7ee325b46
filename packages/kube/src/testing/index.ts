/** What tests of controllers use: a real control plane, a cluster in memory, a scripted peer for wire faults, a fake clock. */
export { ControlPlane, type ControlPlaneOptions, type User } from './control-plane.ts'
export { fakeClock, type FakeClock } from './clock.ts'
export { memoryCluster, type MemoryCluster } from './memory-cluster.ts'
export { startPeer, startRelay, type Peer, type PeerExchange, type PeerOptions, type Relay } from './peer.ts'
