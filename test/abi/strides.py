"""Calls of a bundle of --strides=any: strides.py LIBRARY COMPILER.

Random tensors at any strides give the bytes of row-major ones (of NumPy, where one operation says it), without
ASTRA_CALL_ALLOW_COPY: none is copied by the call. Negative strides and shared elements are refused.
"""

import ctypes as C
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

BUNDLE = tempfile.NamedTemporaryFile(suffix=".astra").name
SOURCE = pathlib.Path(__file__).parent / "strides.uop"
subprocess.run([sys.argv[2], SOURCE, "-o", BUNDLE, "--target=cpu:x86-64-v3", "--strides=any", "--quiet"], check=True)
L = C.CDLL(sys.argv[1])
P=C.c_void_p
class Diag(C.Structure): _fields_=[('size',C.c_size_t),('status',C.c_int32),('text',C.c_char*500)]
class T(C.Structure): _fields_=[('size',C.c_size_t),('buffer',P),('data',P),('bytes',C.c_uint64),('off',C.c_uint64),('dtype',C.c_int32),('ndim',C.c_int32),('shape',C.POINTER(C.c_int64)),('strides',C.POINTER(C.c_int64)),('flags',C.c_uint32)]
class Call(C.Structure): _fields_=[('size',C.c_size_t),('entry',P),('inputs',C.POINTER(T)),('ni',C.c_uint32),('outputs',C.POINTER(T)),('no',C.c_uint32),('after',P),('na',C.c_uint32),('flags',C.c_uint32)]
d=Diag(size=512)
def ck(s): 
    if s: raise RuntimeError((s,d.text))
def mk(f,*a):
    o=P(); ck(getattr(L,f)(C.byref(o),*a)); return o
rt=mk('astra_runtime_init',None,C.byref(d)); dev=mk('astra_device_init',rt,b'cpu',None,C.byref(d)); st=mk('astra_stream_init',dev,C.byref(d))
b=mk('astra_bundle_init_file',rt,BUNDLE.encode(),None,C.byref(d)); devs=(P*1)(dev); ld=mk('astra_loaded_init',b,devs,1,C.byref(d)); se=mk('astra_session_init',ld,None,C.byref(d))
DT={'f4':12,'f8':13,'i8':5,'i2':3,'u1':6,'b1':1,'c8':14}
keep=[]
def tens(v):
    sh=(C.c_int64*max(1,v.ndim))(*v.shape); s=(C.c_int64*max(1,v.ndim))(*[x//v.itemsize for x in v.strides]); keep.append((sh,s,v))
    base=v
    while isinstance(base.base,np.ndarray): base=base.base
    lo=base.__array_interface__['data'][0]; 
    return T(size=72,data=lo,bytes=base.nbytes,off=v.__array_interface__['data'][0]-lo,dtype=DT[v.dtype.str[1:]],ndim=v.ndim,shape=sh,strides=s)
def run(name,ins,outs,flags=0):
    e=P(); ck(L.astra_bundle_find_entry(b,name.encode(),C.byref(e),C.byref(d)))
    I=(T*len(ins))(*[tens(v) for v in ins]); O=(T*len(outs))(*[tens(v) for v in outs])
    c=Call(size=64,entry=e,inputs=I,ni=len(ins),outputs=O,no=len(outs),flags=flags); p=P()
    ck(L.astra_session_submit(se,st,C.byref(c),C.byref(p),C.byref(d))); ck(L.astra_promise_wait(p,C.byref(d))); L.astra_promise_free(C.byref(p))
r=np.random.default_rng(1)
def view(shape,dt,out=False):
    n=len(shape); o=r.permutation(n); k=r.choice([1,1,2,3],n); x=r.integers(0,3,n)
    mem=np.ascontiguousarray((r.normal(size=[shape[a]*k[a]+x[a] for a in o])*50).astype(dt))
    mem=mem.copy(); v=mem[tuple(slice(x[a]//2,x[a]//2+shape[a]*k[a],k[a]) for a in o)].transpose(np.argsort(o))
    return mem,v
n=0
for i in range(300):
    m,nn,k=(int(r.choice([1,2,3,5,8,17,33,64])) for _ in range(3)); k=min(k,16)
    x=view((m,nn),'f4')[1]; y=view((m,nn),'f4')[1]; row=view((nn,),'f4')[1]; mem,z=view((m,nn),'f4')
    run('add',[x,y,row],[z]); assert z.tobytes()==(x*row+y).tobytes()
    x=view((m,nn,k),'f4')[1]; outs=[view(s,'f4')[1] for s in [(k,m,nn),(nn,m,k),(m*nn*k,),(m,nn,k)]]
    run('turn',[x],outs); w=[x.transpose(2,0,1),x.transpose(1,0,2),np.ascontiguousarray(x).reshape(-1),x[::-1,:,::-1]]
    for a,g in zip(outs,w): assert a.tobytes()==g.tobytes()
    x=view((m,nn),'u1')[1]; y=view((m,nn),'i2')[1]; a=view((m,nn),'i2')[1]; l=view((m,nn),'b1')[1]
    run('narrow',[x,y],[a,l]); assert a.tobytes()==(x.astype('i2')+y).tobytes() and l.tobytes()==(x.astype('i2')<y).tobytes()
    x=view((m,nn),'f4')[1]; o=[view(s,'f4')[1] for s in [(nn,),(m,),(m,)]]; al=np.zeros((),'f4'); so=view((m,nn),'f4')[1]
    run('sums',[x],o+[al,so])
    d2=[np.zeros(s,'f4') for s in [(nn,),(m,),(m,)]]; al2=np.zeros((),'f4'); so2=np.zeros((m,nn),'f4'); run('sums',[np.ascontiguousarray(x)],d2+[al2,so2])
    for a,g in zip(o+[al,so],d2+[al2,so2]): assert a.tobytes()==g.tobytes()
    n+=1
def both(name,ins,shapes):
    o=[view(s,t)[1] if s!=() else np.zeros((),t) for s,t in shapes]; run(name,ins,o)
    d2=[np.zeros(s,t) for s,t in shapes]; run(name,[np.ascontiguousarray(x) for x in ins],d2)
    for a,g in zip(o,d2): assert a.tobytes()==g.tobytes(),name
for i in range(150):
    m,nn,k=(int(r.choice([0,1,2,3,5,8,17,33,64])) for _ in range(3)); k=max(1,min(k,16))
    V=lambda s,t:view(s,t)[1]
    both('wide',[V((m,nn,k),'f8')],[((m,nn,k),'f8'),((m,nn,k),'f8')])
    x=V((m,nn),'c8'); y=V((m,nn),'c8'); both('complex',[x,y],[((m,nn),'c8'),((nn,),'c8')])
    ix=V((k,),'i8'); ix[...]=r.integers(-1,m+1,k); both('take',[V((m,nn),'f4'),ix],[((k,nn),'f4'),((m,nn),'f4')])
    both('product',[V((m,16),'f4'),V((m,8),'f4')],[((m,8),'f4')])
    both('add',[np.broadcast_to(V((1,nn),'f4'),(m,nn)),V((m,nn),'f4'),V((nn,),'f4')],[((m,nn),'f4')])
flipped, one, row = np.ones((4, 4), "f4")[::-1], np.ones((4, 4), "f4"), np.ones(4, "f4")
shared = np.lib.stride_tricks.as_strided(np.ones(16, "f4"), (4, 4), (0, 4))
for ins, out, status in (([flipped, one, row], one.copy(), 9), ([one, one, row], shared, 10)):
    try:
        run("add", ins, [out])
        sys.exit("not refused")
    except RuntimeError as e:
        assert e.args[0][0] == status, e
pathlib.Path(BUNDLE).unlink()
