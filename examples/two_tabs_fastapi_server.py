"""The application of two_tabs.py with FastAPI: `pip install fastapi uvicorn`, then
`uvicorn --app-dir examples two_tabs_fastapi_server:app`, and open http://127.0.0.1:8000/ twice.
"""

from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException
from fastapi.responses import HTMLResponse, StreamingResponse
from pydantic import BaseModel
from starlette.requests import Request
from two_tabs import PAGE, SESSION, agent, followed

from harnpy.session import NotController
from harnpy.session.aio import AsyncSessionRuntime


@asynccontextmanager
async def lifespan(app: FastAPI):
    # A file, so that several servers may share it: each shows the others what its agents are saying.
    async with AsyncSessionRuntime("sqlite:tabs.db", share_chunks=True) as runtime:
        await runtime.open(SESSION, create=True)
        app.state.runtime = runtime
        yield


app = FastAPI(title="Two tabs", lifespan=lifespan)


class Tab(BaseModel):
    tab: str


class Said(Tab):
    text: str


@app.get("/", response_class=HTMLResponse)
async def page():
    return PAGE


@app.get("/events")
async def events(tab: str, request: Request):
    after = int(request.headers.get("last-event-id", 0))
    return StreamingResponse(followed(app.state.runtime, tab, after), media_type="text/event-stream")


@app.post("/take")
async def take(tab: Tab):
    return await app.state.runtime.takeover(SESSION, tab.tab)


@app.post("/send")
async def send(said: Said):
    try:
        result = await app.state.runtime.send(SESSION, said.text, agent=agent, client=said.tab)
    except NotController as refused:
        raise HTTPException(409, str(refused)) from refused
    return {"answer": result.text}
