setInterval(()=>{},1000).unref; const keep=setInterval(()=>{},1000)
import { createEngine, createKillSwitch, memoryGuardStore, memoryProvider } from '@seamark/operator'
const ZONE='bench.test.'; const signal=new AbortController().signal
const wish=(i:number,a='192.0.2.1',r='1')=>({set:{name:`host-${i}.${ZONE}`,type:'A',ttl:60,values:[a]},source:{uid:`dnsendpoint/00000000-0000-4000-8000-${String(i).padStart(12,'0')}`,label:`DNSEndpoint bench/host-${i}`,revision:r}})
const provider=memoryProvider({zones:[ZONE],capabilities:{maxChanges:50000}})
const eng=()=>createEngine({providers:[provider],owner:{id:'b',cluster:'6f1f0f5e-0000-4000-8000-000000000000'},store:memoryGuardStore(),killSwitch:createKillSwitch(),mode:'enforce',types:['A','AAAA','CNAME'],registry:{}})
const s=(d:any[])=>({present:new Set(d.map(x=>x.source.uid)),gone:new Set<string>()})
const d0=Array.from({length:100000},(_,i)=>wish(i)); const e0=eng(); const p0=await e0.plan({desired:d0,unusable:[],sources:s(d0)},'all',signal); console.log('filled',(await e0.apply(p0.plans[0]!,signal)).results.length)
const d=Array.from({length:100000},(_,i)=>wish(i,i%100===0?'192.0.2.2':'192.0.2.1','2')); const w={desired:d,unusable:[],sources:s(d)}
for(let k=0;k<5;k++){ (globalThis as any).gc?.(); const c=process.cpuUsage(), t=performance.now(); const r=await eng().plan(w,'all',signal); const u=process.cpuUsage(c); console.log(r.plans[0]!.changes.length,'cpu',((u.user+u.system)/1e6).toFixed(2),'wall',((performance.now()-t)/1000).toFixed(2)) }

clearInterval(keep)
